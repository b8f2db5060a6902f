package idemhttp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

func TestABodyIsPlainJSON(t *testing.T) {
	s := start(t, database.SQLite)

	t.Run("said to be so in any of these ways", func(t *testing.T) {
		for i, media := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"`, "application/json;", "application/json; profile=x"} {
			if a := s.post(t, key(fmt.Sprint("ok", i)), thing, "Content-Type: "+media); a.Status != 201 {
				t.Errorf("%q: %s", media, a)
			}
		}
	})

	t.Run("and in none of these", func(t *testing.T) {
		for _, headers := range [][]string{
			{"Content-Type: "},
			{"Content-Type: text/plain"},
			{"Content-Type: application/x-www-form-urlencoded"},
			{"Content-Type: application/problem+json"},
			{"Content-Type: application/jsonl"},
			{"Content-Type: json"},
			{"Content-Type: application/json, application/json"},
			{"Content-Type: application/json; charset"},
			{"Content-Type: application/json; charset=utf-16"},
			{"Content-Type: application/json; charset=iso-8859-1"},
			{"Content-Type: application/json", "Content-Type: text/plain"},
			{"Content-Encoding: gzip"},
			{"Content-Encoding: identity"},
			{"Content-Encoding: utf-8"},
			{"Content-Encoding: "},
			{"Content-Encoding: ", "Content-Encoding: gzip"},
		} {
			expect(t, headers, s.post(t, key("k"), thing, headers...), 415, problem.UnsupportedMediaType)
		}
		without := s.raw(t, "POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nIdempotency-Key: k\r\nContent-Length: 12\r\nConnection: close\r\n\r\n"+thing)
		if !strings.HasPrefix(without, "HTTP/1.1 415") {
			t.Errorf("without Content-Type: %s", without)
		}
	})

	t.Run("the key comes before all that", func(t *testing.T) {
		expect(t, "no key", s.As("demo-agent").Send(t, "POST", "/v1/things", "no", "Content-Type: text/plain"), 400, problem.IdempotencyKeyMissing)
	})
}

// RB-111.
func TestABodyHasALimit(t *testing.T) {
	s := start(t, database.SQLite)
	agent := s.As("demo-agent")
	// sized is a valid command of n bytes.
	sized := func(n int) string {
		return `{"name":"` + strings.Repeat("a", n-len(`{"name":""}`)) + `"}`
	}
	send := func(t *testing.T, key string, body io.Reader, length int64) (status int, code problem.Code) {
		t.Helper()
		request, err := agent.Request(t, "POST", "/v1/things", body, "Idempotency-Key: "+key)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length // -1: in chunks
		answer, err := s.Exchange(t, request)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			return 0, ""
		}
		if answer.Status >= 400 {
			code = answer.Problem(t).Code
		}
		return answer.Status, code
	}

	for _, size := range []int{idemhttp.MaxBody - 1, idemhttp.MaxBody} {
		for _, length := range []int64{int64(size), -1} {
			if status, code := send(t, fmt.Sprintf("%d_%d", size, length), strings.NewReader(sized(size)), length); status != 201 {
				t.Errorf("%d bytes, length %d: %d %s", size, length, status, code)
			}
		}
	}
	stored := s.count(t, "things")

	for _, size := range []int{idemhttp.MaxBody + 1, 10 * idemhttp.MaxBody} {
		for _, length := range []int64{int64(size), -1} {
			if status, code := send(t, "k", strings.NewReader(sized(size)), length); status != 413 || code != problem.BodyTooLarge {
				t.Errorf("%d bytes, length %d: %d %s", size, length, status, code)
			}
		}
	}

	t.Run("that white space counts for", func(t *testing.T) {
		body := thing + strings.Repeat(" ", idemhttp.MaxBody)
		if status, _ := send(t, "k", strings.NewReader(body), -1); status != 413 {
			t.Errorf("status %d", status)
		}
	})

	t.Run("that is told before the body is sent", func(t *testing.T) {
		answer := s.raw(t, "POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nIdempotency-Key: k\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1000000000000\r\nExpect: 100-continue\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 413") {
			t.Errorf("a terabyte is answered %s", answer)
		}
	})

	t.Run("that an endless body does not pass, in little memory", func(t *testing.T) {
		request, err := agent.Request(t, "POST", "/v1/things", io.MultiReader(strings.NewReader(`{"name":"`), endless{}), key("k"))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		response, err := http.DefaultClient.Do(request) // Exchange would keep what is sent
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if used := after.TotalAlloc - before.TotalAlloc; response.StatusCode != 413 || used > 16*idemhttp.MaxBody {
			t.Errorf("status %d, %d bytes were allocated", response.StatusCode, used)
		}
	})

	t.Run("and none of that is stored", func(t *testing.T) {
		if now := s.count(t, "things"); now != stored {
			t.Errorf("%d things more", now-stored)
		}
		if status, _ := send(t, "k", strings.NewReader(thing), -1); status != 201 {
			t.Errorf("the key was used up: %d", status)
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestABodyMayTrickle(t *testing.T) {
	s := start(t, database.SQLite)
	reader, writer := io.Pipe()
	go func() {
		for _, b := range []byte(thing) {
			_, _ = writer.Write([]byte{b}) // each is a chunk of its own
		}
		writer.Close()
	}()
	request, err := s.As("demo-agent").Request(t, "POST", "/v1/things", reader, key("k"))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = -1
	if answer, err := s.Exchange(t, request); err != nil || answer.Status != 201 {
		t.Errorf("%s, %v", answer, err)
	}
}

func TestABodyThatBreaksOffIsNotExecuted(t *testing.T) {
	s := start(t, database.SQLite)
	for _, framing := range []string{"Content-Length: 100\r\n\r\n" + thing, "Transfer-Encoding: chunked\r\n\r\nc\r\n" + thing + "\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"+framing)
		_ = conn.(*net.TCPConn).CloseWrite() // what was sent so far is all there is
		if answer := readAll(t, conn); !strings.HasPrefix(answer, "HTTP/1.1 400") || !strings.Contains(answer, "malformed-body") {
			t.Errorf("%q: %s", framing, answer)
		}
		conn.Close()
	}
	s.keepsNothing(t)
}

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	var all bytes.Buffer
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("read answer: %v", err)
		return ""
	}
	defer response.Body.Close()
	_ = response.Write(&all)
	return all.String()
}
