package server_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/server"
)

// line is a line of a tokens file.
func line(token, rest string) string {
	return fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(token)), rest)
}

func tokens(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func whoami(e *echo.Echo) {
	e.GET("/v1/whoami", func(c echo.Context) error { return c.String(200, fmt.Sprint(server.PrincipalOf(c))) }, mayRead)
}

func TestTokensFile(t *testing.T) {
	path := tokens(t, "# who may call\n\n"+line("s3cret", "ci-agent acme agent")+"\t"+strings.ToUpper(line("other", ""))[:64]+"  zoe\tacme approver,auditor\r\n")
	file := func(config *server.Config, _ *server.Service) { config.TokensFile = path }

	t.Run("says who the bearer of a token is", func(t *testing.T) {
		s := start(t, whoami, file)
		for token, want := range map[string]string{"s3cret": "{ci-agent acme [agent]}", "other": "{zoe acme [approver auditor]}"} {
			if a := s.send(t, "GET", "/v1/whoami", "Authorization: Bearer "+token); a.status != 200 || a.body != want {
				t.Errorf("%s: %d %s, want %s", token, a.status, a.body, want)
			}
		}
	})

	t.Run("turns the demo tokens off", func(t *testing.T) {
		s := start(t, whoami, file)
		if a := s.send(t, "GET", "/v1/whoami", asAgent); a.status != 401 {
			t.Errorf("%d", a.status)
		}
	})

	t.Run("stands beside the demo tokens where EINMAL_DEMO says so", func(t *testing.T) {
		s := start(t, whoami, file, func(config *server.Config, _ *server.Service) { config.Demo = true })
		for _, token := range []string{"s3cret", "demo-agent"} {
			if a := s.send(t, "GET", "/v1/whoami", "Authorization: Bearer "+token); a.status != 200 {
				t.Errorf("%s: %d", token, a.status)
			}
		}
		if !strings.Contains(s.log.String(), "accepting the published demo tokens") {
			t.Errorf("the log does not warn:\n%s", s.log)
		}
	})

	t.Run("that cannot be understood is refused by line, and nothing on the line is repeated", func(t *testing.T) {
		good := line("s3cret", "ci-agent acme agent")
		digest := good[:64]
		for what, c := range map[string]struct{ text, want string }{
			"a field too few":     {good + digest + " zoe acme\n", "line 2: 3 fields"},
			"a field too many":    {digest + " zoe smith acme agent\n", "line 1: 5 fields"},
			"a token in clear":    {"s3cret zoe acme agent\n", "line 1: the first field is not the 64 hexadecimal digits"},
			"a digest too short":  {digest[:62] + " zoe acme agent\n", "line 1: the first field"},
			"a digest too long":   {digest + "00 zoe acme agent\n", "line 1: the first field"},
			"a digest of letters": {strings.Repeat("g", 64) + " zoe acme agent\n", "line 1: the first field"},
			"an unknown role":     {digest + " zoe acme agent,root\n", "line 1: the last field is not a list of agent, approver, operator, auditor"},
			"an empty role":       {digest + " zoe acme agent,\n", "line 1: the last field"},
			"a token twice":       {"\n" + good + good, "line 3: this token is on an earlier line too"},
			"nobody":              {"# nobody yet\n", "nobody could call"},
		} {
			config := server.Config{Listen: "127.0.0.1:0", TokensFile: tokens(t, c.text)}
			_, err := server.New(config, server.Service{Name: "tickets", Log: config.Logger(&log{})})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", what, err, c.want)
				continue
			}
			for _, secret := range []string{"s3cret", digest[:16], "zoe", "root"} {
				if strings.Contains(strings.TrimPrefix(err.Error(), config.TokensFile), secret) {
					t.Errorf("%s: error %q repeats %q", what, err, secret)
				}
			}
		}
	})
}

func TestDemoTokens(t *testing.T) {
	try := func(listen string, demo bool) error {
		config := server.Config{Listen: listen, Demo: demo}
		_, err := server.New(config, server.Service{Name: "tickets", Log: config.Logger(&log{})})
		return err
	}

	t.Run("are accepted on loopback", func(t *testing.T) {
		for _, listen := range []string{"127.0.0.1:8081", "127.8.8.8:0", "[::1]:8081", "localhost:8081"} {
			if err := try(listen, false); err != nil {
				t.Errorf("%s: %v", listen, err)
			}
		}
	})

	t.Run("are refused where others can connect, with a sentence that says what to set", func(t *testing.T) {
		for _, listen := range []string{":8081", "0.0.0.0:8081", "[::]:8081", "192.0.2.1:8081", "10.0.0.1:8081"} {
			err := try(listen, false)
			if err == nil || !strings.Contains(err.Error(), "EINMAL_TOKENS_FILE") || !strings.Contains(err.Error(), "EINMAL_DEMO=1") {
				t.Errorf("%s: %v", listen, err)
			}
		}
	})

	t.Run("are accepted there with EINMAL_DEMO", func(t *testing.T) {
		for _, listen := range []string{":8081", "0.0.0.0:8081"} {
			if err := try(listen, true); err != nil {
				t.Errorf("%s: %v", listen, err)
			}
		}
	})
}
