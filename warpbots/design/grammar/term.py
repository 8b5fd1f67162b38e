"""Terms: trees of symbols that join at ports, and the text notation of these trees."""

import dataclasses
import re
from collections.abc import Iterator

__all__ = ["Term"]

_TOKEN = re.compile(r"\s*(?:([\w.-]+)|([():,]))")


@dataclasses.dataclass(frozen=True)
class Term:
    """A symbol, and the terms that join the symbol at its ports.

    In the text notation, ``palm(back: finger, out: finger)`` is a palm with two fingers. A symbol that follows another
    symbol joins it at the port "out": ``joint phalanx tip`` is short for ``joint(out: phalanx(out: tip))``.

    Attributes:
        symbol: Name of a component or of a rule.
        children: Pairs of the name of a port and the term that joins there, sorted by the name of the port.
    """

    symbol: str
    children: tuple[tuple[str, "Term"], ...] = ()

    def __str__(self):
        if len(self.children) == 1 and self.children[0][0] == "out":
            return f"{self.symbol} {self.children[0][1]}"
        inside = ", ".join(f"{port}: {child}" for port, child in self.children)
        return f"{self.symbol}({inside})" if inside else self.symbol

    @classmethod
    def parse(cls, text: str) -> "Term":
        """The term that `text` describes in the text notation.

        Raises:
            ValueError: `text` is not a term, or a port is used twice.
        """
        reader = _Reader(text)
        term = reader.term()
        if reader.next is not None:
            raise reader.fault("the end")
        return term

    def symbols(self) -> Iterator[str]:
        """All symbols of the term: parents before children, one branch after the other."""
        yield self.symbol
        for _, child in self.children:
            yield from child.symbols()

    def nodes(self) -> Iterator["Term"]:
        """The term that begins at each symbol, in the order of `symbols`."""
        yield self
        for _, child in self.children:
            yield from child.nodes()


class _Reader:
    """A parser of the text notation, which looks one token ahead.

    Attributes:
        next: The next token; None at the end.
    """

    def __init__(self, text: str):
        self._text, self._at = text, 0
        self.next: str | None = None
        self._advance()

    def term(self) -> Term:
        symbol, children = self._word(), {}
        if self.next == "(":
            separator = "("
            while self.next == separator:
                self._advance()
                self._port(children)
                separator = ","
            self._expect(")")
        if self._is_word():
            self._join(children, "out")
        return Term(symbol, tuple(sorted(children.items())))

    def fault(self, wanted: str) -> ValueError:
        found = "the end" if self.next is None else repr(self.next)
        return ValueError(f"{self._text!r}: expected {wanted}, got {found} (as in 'palm(back: finger, out: finger)')")

    def _port(self, children: dict[str, Term]) -> None:
        port = self._word()
        self._expect(":")
        self._join(children, port)

    def _join(self, children: dict[str, Term], port: str) -> None:
        if port in children:
            raise ValueError(f"{self._text!r}: port {port!r} is taken twice")
        children[port] = self.term()

    def _is_word(self) -> bool:
        return self.next is not None and self.next not in "():,"

    def _word(self) -> str:
        if not self._is_word():
            raise self.fault("a name")
        word = self.next
        self._advance()
        return word

    def _expect(self, token: str) -> None:
        if self.next != token:
            raise self.fault(repr(token))
        self._advance()

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None and self._text[self._at :].strip():
            raise ValueError(
                f"{self._text!r}: names have letters, digits, '_', '.' and '-', got {self._text[self._at :]!r}"
            )
        self.next = found and (found[1] or found[2])
        self._at = found.end() if found else len(self._text)
