PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE artifacts (
    artifact_id TEXT PRIMARY KEY, filename TEXT NOT NULL, uploaded_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
);
INSERT INTO "artifacts" VALUES('h_job.py','job.py',4,10);
CREATE TABLE attempts (
    attempt_id TEXT PRIMARY KEY, job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number INTEGER NOT NULL, started_ms INTEGER NOT NULL, restored_from TEXT
);
INSERT INTO "attempts" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,5,'/savepoints/s-1');
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
    at_ms INTEGER NOT NULL, body TEXT NOT NULL
);
INSERT INTO "failures" VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',6,'{"message": "a worker was killed"}');
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, entered_ms TEXT NOT NULL,
    submitted_ms INTEGER NOT NULL, folder TEXT NOT NULL, code TEXT NOT NULL,
    arguments TEXT NOT NULL, settings TEXT NOT NULL, restore_path TEXT,
    next_checkpoint_id INTEGER NOT NULL
);
INSERT INTO "jobs" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','flights','RUNNING','{"CREATED": 5, "RUNNING": 6}',5,'/jobs/a','/artifacts/x','["--speed", "0"]','{"parallelism.default": "2"}','/savepoints/s-1',8);
CREATE TABLE operations (
    trigger_id TEXT PRIMARY KEY, job_id TEXT, what TEXT NOT NULL, requested_ms INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, location TEXT, checkpoint_id INTEGER, failure TEXT
);
INSERT INTO "operations" VALUES('cccccccccccccccccccccccccccccccc','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','savepoint',6,1,'/savepoints/s-2',6,NULL);
CREATE TABLE processes (
    pid INTEGER NOT NULL, created REAL NOT NULL, what TEXT NOT NULL, PRIMARY KEY (pid, created)
);
INSERT INTO "processes" VALUES(7,1.5,'worker');
CREATE TABLE snapshots (
    job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, checkpoint_id INTEGER NOT NULL,
    kind TEXT NOT NULL, path TEXT NOT NULL, completed_ms INTEGER NOT NULL,
    ends_job INTEGER NOT NULL, discarded INTEGER NOT NULL, PRIMARY KEY (job_id, checkpoint_id)
);
INSERT INTO "snapshots" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',7,'checkpoint','/checkpoints/7',9,0,0);
COMMIT;
