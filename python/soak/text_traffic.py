"""Traffic of a soak to a language model: chats whole and in events, Triton's generate, and clients that leave."""

import http.client
import json

PATIENCE = 120


class Connection:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, address):
        self.address = address

    def ask(self, method, path, body=None):
        """Status and bytes of an answer, on a connection of its own."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"} if text else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def events(body):
    """Events of a stream without the mark of its end, and whether the mark is there."""
    lines = [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]
    ended = bool(lines) and lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines if line != "[DONE]"], ended


class Chats:
    """Chats whose answers are known, whole or in events."""

    def __init__(self, soak, streamed):
        self.ledger, self.streamed, self.chats = soak.ledger, streamed, soak.chats
        self.connection = Connection(soak.http)
        self.kind = "openai chat stream" if streamed else "openai chat"
        self.rounds = 0

    def step(self):
        chat = self.chats[self.rounds % len(self.chats)]
        self.rounds += 1
        number = self.ledger.begin(self.kind)
        status, body = self.connection.ask("POST", "/v1/chat/completions", {
            "model": "chat", "messages": chat[:-1], "temperature": 0, "max_tokens": 400, "stream": self.streamed})
        if status != 200:
            return self.ledger.end(number, "error", f"{status} {body!r}")
        if not self.streamed:
            found = json.loads(body)["choices"][0]["message"]["content"]
        else:
            parts, ended = events(body)
            found = "".join(choice["delta"].get("content") or "" for part in parts for choice in part["choices"])
            found += "" if ended else " (and no end)"
        return self.ledger.check(number, found, chat[-1]["content"])


class Generated:
    """Triton's generate and generate_stream, whose answers must be the same each time."""

    def __init__(self, soak, streamed):
        self.ledger, self.streamed = soak.ledger, streamed
        self.connection = Connection(soak.http)
        self.kind = "generate_stream" if streamed else "generate"
        self.first = None

    def step(self):
        number = self.ledger.begin(self.kind)
        path = f"/v2/models/chat/{self.kind}"
        status, body = self.connection.ask("POST", path, {"text_input": "Hello!", "parameters": {"temperature": 0, "max_tokens": 24}})
        if status != 200:
            return self.ledger.end(number, "error", f"{status} {body!r}")
        if self.streamed:
            found = "".join(part["text_output"] for part in events(body)[0])
        else:
            found = json.loads(body)["text_output"]
        self.first = found if self.first is None else self.first
        return self.ledger.check(number, found, self.first)


class LeavesChat:
    """Leaves in the middle of an answer."""

    kind = "openai chat, left"

    def __init__(self, soak):
        self.ledger, self.address, self.chats = soak.ledger, soak.http, soak.chats

    def step(self):
        number = self.ledger.begin(self.kind)
        longest = max(self.chats, key=lambda chat: len(chat[-1]["content"]))
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        body = json.dumps({"model": "chat", "messages": longest[:-1], "temperature": 0, "stream": True, "ignore_eos": True,
                           "max_tokens": 900})
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read(40)
        connection.close()
        self.ledger.end(number, "left" if answer.status == 200 else "error", answer.status)
