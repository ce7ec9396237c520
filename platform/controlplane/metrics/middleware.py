"""Pages while the series store is away: one sentence, and status 503."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from controlplane.metrics.contract import SeriesAway

GetResponse = Callable[[HttpRequest], HttpResponse]


class SeriesAwayMiddleware:
    """Answers for views that could not read their series."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Say why there is nothing to draw."""
        if not isinstance(error, SeriesAway):
            return None
        sentence = f"charts cannot be read: {error}"
        return HttpResponse(sentence, status=503, content_type="text/plain; charset=utf-8")
