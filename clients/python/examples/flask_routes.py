"""Limits of single views of Flask, with an answer of the application's own: `flask --app flask_routes run`."""

import os

from flask import Flask, Request, jsonify
from flask.typing import ResponseReturnValue
from redis import Redis

from redis_ratelimit import RateLimiter
from redis_ratelimit.gates import Refusal
from redis_ratelimit.flask import Rule, limited

app = Flask(__name__)
limiter = RateLimiter(Redis(port=int(os.environ.get("REDIS_PORT", "6379"))))


def caller(request: Request) -> str:
    return request.headers.get("x-user") or "anonymous"


def too_many(request: Request, refusal: Refusal) -> ResponseReturnValue:
    return jsonify(error="slow down", seconds=refusal.retry_after), refusal.status


@app.get("/search")
@limited(limiter, [Rule("search", caller, "2/m")], on_refused=too_many)
def search() -> str:
    return "nothing"
