"""Who gets which slots."""

from engine.cluster.machines.scheduler import Shortage, SlotPool


def pool(**task_managers):
    slots = SlotPool()
    for name, count in task_managers.items():
        slots.register(name, count)
    return slots


def test_a_job_is_spread_over_the_emptiest_task_managers():
    held = pool(a=2, b=2).allocate("one", 3)
    assert [slot.task_manager for slot in held] == ["a", "b", "a"]
    assert [slot.index for slot in held] == [0, 1, 2]


def test_too_few_slots_take_none_and_say_how_many_are_missing():
    slots = pool(a=1, b=1)
    short = slots.allocate("one", 3)
    assert short == Shortage(3, 2)
    assert str(short) == "waits for 3 slots, 2 free"
    assert slots.free() == {"a": 1, "b": 1}


def test_one_slot_is_singular():
    assert str(pool().allocate("one", 1)) == "waits for 1 slot, 0 free"


def test_released_slots_can_be_taken_again():
    slots = pool(a=1)
    slots.allocate("one", 1)
    assert isinstance(slots.allocate("two", 1), Shortage)
    slots.release("one")
    assert not isinstance(slots.allocate("two", 1), Shortage)


def test_a_lost_task_manager_names_the_attempts_that_it_takes_along():
    slots = pool(a=1, b=2)
    slots.allocate("one", 1)
    slots.allocate("two", 2)
    assert slots.lose("a") == {"two"}
    assert slots.free() == {"b": 0}


def test_a_task_manager_that_comes_back_is_empty():
    slots = pool(a=2)
    slots.allocate("one", 2)
    slots.register("a", 2)
    assert slots.free() == {"a": 2}
