package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Requests that come instead of a start-up message, by the number they carry in place of a protocol version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// maxMessage bounds a message, so that a peer that doesn't speak the protocol can't make us allocate what its first bytes happen to say.
const maxMessage = 64 << 20

// pgMessage is one message with its bytes as they came. kind is 0 for a start-up message, which has none.
type pgMessage struct {
	kind byte
	raw  []byte
}

// body is what follows the kind and the length.
func (m pgMessage) body() []byte {
	if m.kind == 0 {
		return m.raw[4:]
	}
	return m.raw[5:]
}

// texts are the first n null-terminated strings of the body; what is missing is empty.
func (m pgMessage) texts(n int) []string {
	texts := make([]string, n)
	rest := m.body()
	for i := range texts {
		text, after, found := bytes.Cut(rest, []byte{0})
		if !found {
			break
		}
		texts[i], rest = string(text), after
	}
	return texts
}

// startup returns the start-up message, or a cancel request, after refusing every offer to encrypt.
func startup(client net.Conn, from *bufio.Reader) (pgMessage, bool, error) {
	for {
		m, err := readMessage(from, 0)
		if err != nil || len(m.body()) < 4 {
			return m, false, fmt.Errorf("read start-up message: %w", err)
		}
		switch binary.BigEndian.Uint32(m.body()) {
		case sslRequest, gssRequest:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return m, false, err
			}
		case cancelRequest:
			return m, true, nil
		default:
			return m, false, nil
		}
	}
}

// next reads a message that has a kind.
func next(from *bufio.Reader) (pgMessage, error) {
	kind, err := from.ReadByte()
	if err != nil {
		return pgMessage{}, err
	}
	return readMessage(from, kind)
}

func readMessage(from *bufio.Reader, kind byte) (pgMessage, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return pgMessage{}, err
	}
	n := binary.BigEndian.Uint32(length[:]) // counts itself
	if n < 4 || n > maxMessage {
		return pgMessage{}, fmt.Errorf("message of %d bytes: not PostgreSQL's protocol", n)
	}
	m := pgMessage{kind: kind}
	if kind != 0 {
		m.raw = append(m.raw, kind)
	}
	m.raw = append(m.raw, length[:]...)
	head := len(m.raw)
	m.raw = append(m.raw, make([]byte, n-4)...)
	_, err := io.ReadFull(from, m.raw[head:])
	return m, err
}
