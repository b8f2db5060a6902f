package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// client is one caller's keep-alive connection. It does no more than HTTP/1.1 asks for and allocates nothing per request: it
// shares the processors with what it measures, and net/http's client costs about as much as a handler.
type client struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	answer answer
}

// answer is what the last request was answered with. It is valid until the next.
type answer struct {
	status  int
	outcome []byte // Idempotency-Outcome; empty from the bare service
	body    []byte
}

func dial(addr string) (*client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *client) close() { c.conn.Close() }

// post sends a ticket and reads the answer.
func (c *client) post(key string, body []byte) (*answer, error) {
	c.out = append(c.out[:0], "POST /v1/tickets HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer demo-agent\r\nContent-Type: application/json\r\nIdempotency-Key: "...)
	c.out = append(c.out, key...)
	c.out = append(c.out, "\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return &c.answer, nil
}

func (c *client) read() (err error) {
	line, err := c.in.ReadSlice('\n') // HTTP/1.1 201 Created
	if err != nil {
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("no status in %q", line)
	}
	c.answer.status, err = strconv.Atoi(string(line[9:12]))
	if err != nil {
		return err
	}
	c.answer.outcome = c.answer.outcome[:0]
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
		if value, ok := bytes.CutPrefix(line, []byte("Idempotency-Outcome: ")); ok {
			c.answer.outcome = append(c.answer.outcome, value...)
		}
	}
	if length < 0 {
		return errors.New("no Content-Length: the answer is larger than this client is for")
	}
	if cap(c.answer.body) < length {
		c.answer.body = make([]byte, length)
	}
	c.answer.body = c.answer.body[:length]
	_, err = io.ReadFull(c.in, c.answer.body)
	return err
}
