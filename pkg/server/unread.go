package server

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/einmal/einmal/pkg/problem"
)

// unreadListener makes problem documents of what net/http says, in plain text and before any handler is asked, about a request
// that it can't read. A client that reads problem documents reads every answer of ours.
type unreadListener struct{ *net.TCPListener }

// Accept implements net.Listener.
func (l unreadListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return unreadConn{conn}, nil
}

// unreadConn embeds the TCP connection, so that net/http keeps what it does with one: half-closing, sendfile.
type unreadConn struct{ *net.TCPConn }

// Write implements net.Conn. net/http writes such an answer in one go, straight to the connection.
func (c unreadConn) Write(p []byte) (int, error) {
	status, ok := unread(p)
	if !ok {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(unreadAnswer(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unread recognises such an answer by its headers, which are these two in each of them. An answer of a handler has a Date as well.
func unread(p []byte) (status string, ok bool) {
	head, _, ok := bytes.Cut(p, []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"))
	line, ok2 := bytes.CutPrefix(head, []byte("HTTP/1.1 "))
	if !ok || !ok2 || bytes.ContainsAny(line, "\r\n") {
		return "", false
	}
	return string(line), true
}

// unreadAnswer is the whole answer for a status such as "400 Bad Request: invalid header value".
func unreadAnswer(status string) []byte {
	code, err := strconv.Atoi(status[:min(3, len(status))])
	if err != nil {
		code = http.StatusBadRequest
	}
	p := problem.New(problem.MalformedRequest, "This service can't read the request as HTTP/1.1 ("+status+").")
	switch code {
	case http.StatusBadRequest:
		p.Detail += " No header's value may have control characters; in Idempotency-Key only those from ! to ~ are allowed."
	case http.StatusRequestHeaderFieldsTooLarge:
		p = problem.New(problem.HeadersTooLarge, fmt.Sprintf("The headers have more than %d KiB. An Idempotency-Key has up to 255 characters.", maxHeaderBytes>>10))
	}
	p.Status = code // also 501 for an unknown Transfer-Encoding, and 505
	body := p.JSON()
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		code, http.StatusText(code), problem.ContentType, len(body), body)
}
