package idemhttp_test

import (
	"net"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
)

func TestAWriteNeedsOneKey(t *testing.T) {
	s := start(t, database.SQLite)
	agent := s.As("demo-agent")

	t.Run("none is refused with what to do", func(t *testing.T) {
		p := expect(t, "no key", agent.Send(t, "POST", "/v1/things", thing), 400, problem.IdempotencyKeyMissing)
		if p.Effect != problem.EffectNone || p.NextAction != problem.NextFixRequest || !strings.Contains(p.Detail, "UUIDv7") {
			t.Errorf("advice: %+v", p)
		}
	})

	t.Run("what is no key is refused without repeating it", func(t *testing.T) {
		for name, value := range map[string]string{
			"empty":                     "",
			"only spaces":               "  ",
			"empty string":              `""`,
			"256 characters":            strings.Repeat("a", 256),
			"8 KiB":                     strings.Repeat("k", 8<<10),
			"a space":                   "secret key",
			"a space in quotes":         `"secret key"`,
			"not ASCII":                 "secrét",
			"an emoji":                  "secret\U0001F511",
			"not UTF-8":                 "secret\xff",
			"a tab":                     "secret\tkey",
			"DEL":                       "secret\x7f",
			"a list":                    "secret,key",
			"a list of strings":         `"secret", "key"`,
			"a parameter":               `"secret";a=1`,
			"an open string":            `"secret`,
			"a quotation mark inside":   `secret"key`,
			"a backslash":               `secret\key`,
			"an unknown escape":         `"secret\key"`,
			"a following operation":     "mirror:secret",
			"a following, quoted":       `"mirror:secret"`,
			"an alert":                  "am:secret",
			"an event of the provider":  "psp:secret",
			"a reserved one by escapes": `"ps\p:secret"`,
		} {
			// Raw, since net/http refuses to send some of them.
			answer := s.raw(t, "POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nContent-Type: application/json\r\n"+
				"Content-Length: 12\r\nConnection: close\r\nIdempotency-Key: "+value+"\r\n\r\n"+thing)
			if name == "DEL" || name == "a tab" { // net/http answers these before any handler is asked; pkg/server gives that its form
				if !strings.HasPrefix(answer, "HTTP/1.1 400") {
					t.Errorf("%s: %s", name, answer)
				}
				continue
			}
			if !strings.HasPrefix(answer, "HTTP/1.1 400") || !strings.Contains(answer, `"code":"idempotency-key-invalid"`) {
				t.Errorf("%s: %s", name, answer)
			}
			if strings.Contains(answer, "secret") {
				t.Errorf("%s: the answer repeats the key: %s", name, answer)
			}
		}
	})

	t.Run("two field lines are refused, equal ones too", func(t *testing.T) {
		expect(t, "two lines", s.post(t, key("k"), thing, key("k")), 400, problem.IdempotencyKeyInvalid)
		expect(t, "two lines", s.post(t, key("k"), thing, key("l")), 400, problem.IdempotencyKeyInvalid)
	})

	s.keepsNothing(t)

	t.Run("both spellings name one key", func(t *testing.T) {
		longest := strings.Repeat("~", 255)
		for bare, inQuotes := range map[string]string{
			"plain":              `"plain"`,
			longest:              `"` + longest + `"`,
			"../x":               `"../x"`,
			"%0a":                `"%0a"`,
			"MIRROR:x":           `"MIRROR:x"`, // case-sensitive
			"{'a':1};b=2":        `"{'a':1};b=2"`,
			`"with \" and \\"`:   `"with \" and \\"`,
			"0198c7a0-0000-7000": `"0198c7a0-0000-7000"`,
		} {
			if strings.Contains(bare, " ") {
				continue
			}
			first, second := s.post(t, spelled(bare), thing), s.post(t, spelled(inQuotes), thing)
			if first.Status != 201 || second.Outcome() != "replayed" || string(first.Body) != string(second.Body) {
				t.Errorf("%s and %s: %s and %s", bare, inQuotes, first, second)
			}
		}
		first, second := s.post(t, spelled(`"a\"b\\c,d"`), thing), s.post(t, spelled(` "a\"b\\c,d" `), thing)
		if first.Status != 201 || second.Outcome() != "replayed" {
			t.Errorf("with escapes: %s and %s", first, second)
		}
		if other := s.post(t, spelled("PLAIN"), thing); other.Outcome() != "executed" {
			t.Errorf("another case is another key: %s", other)
		}
	})
}

// raw sends bytes as they are and returns the whole answer.
func (s *things) raw(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return readAll(t, conn)
}

func TestAgentRunId(t *testing.T) {
	s := start(t, database.SQLite)
	longest := strings.Repeat("~", 128)

	t.Run("is recorded and never part of the command", func(t *testing.T) {
		first := s.post(t, key("k"), thing, "Agent-Run-Id: "+longest)
		second := s.post(t, key("k"), thing, "Agent-Run-Id: another")
		third := s.post(t, key("k"), thing)
		if first.Outcome() != "executed" || second.Outcome() != "replayed" || third.Outcome() != "replayed" {
			t.Errorf("%s, %s, %s", first, second, third)
		}
		var op operation
		s.get(t, "/v1/operations/"+first.Header.Get("Operation-Id")).Decode(t, &op)
		if op.AgentRun != longest {
			t.Errorf("recorded %q", op.AgentRun)
		}
	})

	t.Run("is one value of 1 to 128 visible characters", func(t *testing.T) {
		for _, value := range []string{"", strings.Repeat("~", 129), "a b", "é", "a\xff"} {
			p := expect(t, value, s.post(t, key("l"), thing, "Agent-Run-Id: "+value), 422, problem.ValidationFailed)
			if len(p.Errors) != 1 || !strings.Contains(p.Errors[0].Detail, "Agent-Run-Id") {
				t.Errorf("%q: %+v", value, p.Errors)
			}
		}
		expect(t, "two lines", s.post(t, key("l"), thing, "Agent-Run-Id: a", "Agent-Run-Id: a"), 422, problem.ValidationFailed)
	})

	t.Run("is judged after the body, and together with it", func(t *testing.T) {
		expect(t, "no JSON", s.post(t, key("l"), "no", "Agent-Run-Id: a b"), 400, problem.MalformedBody)
		expect(t, "no JSON by type", s.post(t, key("l"), thing, "Agent-Run-Id: a b", "Content-Type: text/plain"), 415, problem.UnsupportedMediaType)
		p := expect(t, "both wrong", s.post(t, key("l"), `{"name":""}`, "Agent-Run-Id: a b"), 422, problem.ValidationFailed)
		if len(p.Errors) != 2 {
			t.Errorf("%+v; want both", p.Errors)
		}
	})
}

func TestQueryOfAWrite(t *testing.T) {
	s := start(t, database.SQLite)
	for _, query := range []string{"?notify=1", "?", "?%zz"} {
		t.Run("is refused, since it would count for nothing: "+query, func(t *testing.T) {
			a := s.As("demo-agent").Send(t, "POST", "/v1/things"+query, thing, key("q"))
			p := expect(t, query, a, 422, problem.ValidationFailed)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != "?" {
				t.Errorf("%+v", p.Errors)
			}
			s.keepsNothing(t)
		})
	}
}
