package deployments_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
)

func TestAnArtifact(t *testing.T) {
	s := start(t, database.SQLite)
	hex, commit := strings.Repeat("0123456789abcdef", 4), strings.Repeat("0123abcdef", 4)
	body := func(artifact string) string {
		text, err := json.Marshal(map[string]string{"service": "web", "environment": "prod", "artifact": artifact})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	t.Run("that can't change is named by it alone", func(t *testing.T) {
		for artifact, want := range map[string]string{
			"app@sha256:" + hex:                              "",
			"app@sha512:" + hex + hex:                        "",
			"registry.example:5000/team/app@sha256:" + hex:   "",
			"app:v1@sha256:" + hex:                           "app@sha256:" + hex,
			"registry.example:5000/app:latest@sha256:" + hex: "registry.example:5000/app@sha256:" + hex,
			"git+https://git.example/team/app@" + commit:     "",
			"git+https://git.example/team/app.git@" + hex:    "",
		} {
			if want == "" {
				want = artifact
			}
			a := s.agent().Send(t, "POST", "/v1/fingerprints", `{"method":"POST","path":"/v1/deployments","body":`+body(artifact)+`}`)
			var told struct{ Canonical string }
			a.Decode(t, &told)
			if !strings.Contains(told.Canonical, `"artifact":"`+want+`"`) {
				t.Errorf("%s: %s", artifact, a)
			}
		}
	})

	t.Run("that can change is refused, with a way to name it for good", func(t *testing.T) {
		for _, artifact := range []string{
			"app", "app:latest", "app:v1.2.3", "main", "Main", "HEAD", "refs/heads/main", "feature/x", "v1", "abc1234",
			"git+https://git.example/app", "git+https://git.example/app@main", "git+https://git.example/app@refs/tags/v1", "git+https://git.example/app@",
		} {
			p := expect(t, s.deploy(t, "k", body(artifact)), 422, problem.MutableReference)
			if !strings.Contains(p.Detail, "crane digest") && !strings.Contains(p.Detail, "git rev-parse") || len(p.Errors) != 1 || p.Errors[0].Pointer != "/artifact" {
				t.Errorf("%s: %+v", artifact, p)
			}
		}
	})

	t.Run("whose digest is none is refused as that", func(t *testing.T) {
		for _, artifact := range []string{
			"app@sha256:" + hex[1:], "app@sha256:" + hex + "0", "app@sha256:" + strings.ToUpper(hex), "app@sha256:" + strings.Repeat("g", 64),
			"app@sha256:", "app@" + hex, "app@", "app@md5:" + hex[:32], "app@sha384:" + hex[:32] + hex, "app@SHA256:" + hex, "app@sha512:" + hex, "app@sha256:" + hex + "@x",
			"app@sha256:" + hex + ":v1", "sha256:" + hex, commit, hex,
			"git+https://git.example/app@" + commit[1:], "git+https://git.example/app@" + commit + "0", "git+https://git.example/app@" + strings.ToUpper(commit),
			"git+https://git.example/app@abc1234",
		} {
			if p := expect(t, s.deploy(t, "k", body(artifact)), 422, problem.InvalidDigest); len(p.Errors) != 1 || p.Errors[0].Pointer != "/artifact" {
				t.Errorf("%s: %+v", artifact, p)
			}
		}
	})

	t.Run("that is none is refused as whatever else is wrong", func(t *testing.T) {
		for _, artifact := range []string{
			"", "app@sha256:" + hex + "\n", " app@sha256:" + hex, "app @sha256:" + hex, "App@sha256:" + hex, "@sha256:" + hex, "app:@sha256:" + hex,
			"https://git.example/app@" + commit, "git+ssh://git@git.example/app@" + commit, "git+http://git.example/app@" + commit, "git+https://user:secret@git.example/app@" + commit,
			"git+https:///app@" + commit, "git+https://git.example@" + commit, "git+https://git.example/app?ref=x@" + commit, "git+https://git.example/app#x@" + commit,
			"git+https://git.example/app#@" + commit, "git+https://git.example/app?@" + commit, "git+https://:443/app@" + commit,
			"git+https://@" + commit, "ä@sha256:" + hex, strings.Repeat("a", 1000) + "@sha256:" + hex,
		} {
			a := s.deploy(t, "k", body(artifact))
			if p := expect(t, a, 422, problem.ValidationFailed); len(p.Errors) != 1 || p.Errors[0].Pointer != "/artifact" || strings.Contains(string(a.Body), "secret") {
				t.Errorf("%q: %s", artifact, a)
			}
		}
	})

	t.Run("is refused before anything else happens, so the key is free", func(t *testing.T) {
		expect(t, s.agent().Send(t, "GET", "/v1/operations", "", key("k")), 404, problem.OperationNotFound)
		if d := s.succeeds(t, "k", body("app@sha256:"+hex)); d.FencingToken != 1 {
			t.Errorf("%+v", d)
		}
		if n := len(s.cluster.ledger("rollout")); n != 1 {
			t.Errorf("%d rollouts", n)
		}
	})
}

func TestACommandIsToldAllThatIsWrong(t *testing.T) {
	s := start(t, database.SQLite)
	a := s.deploy(t, "k", `{"service":"Web","environment":"-","artifact":"","expected_version":0,"when_locked":"later"}`)
	p := expect(t, a, 422, problem.ValidationFailed)
	var at []string
	for _, v := range p.Errors {
		at = append(at, v.Pointer)
	}
	if got := strings.Join(at, " "); got != "/service /environment /artifact /expected_version /when_locked" {
		t.Errorf("got %s", got)
	}
	for _, body := range []string{`{"service":"web","environment":"prod"}`, `{}`, `{"service":"web","environment":"prod","artifact":"` + image("a") + `","force":true}`} {
		expect(t, s.deploy(t, "k", body), 422, problem.ValidationFailed)
	}
	expect(t, s.about(t, "dep_"+nobodyIs, "rollback", "k", `{"to":""}`), 422, problem.ValidationFailed)
	expect(t, s.about(t, "dep_"+nobodyIs, "cancel", "k", `{"why":"x"}`), 422, problem.ValidationFailed)
}
