package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var otherAccountSameKey = Scenario{
	Name:    "other_account_same_key",
	Promise: "Keys belong to accounts: two accounts with one key and one command have two operations, and see nothing of each other.",
	run: func(s *Stage) int {
		service := s.Serve("")
		key, body := s.NewKey(), ticket{Project: "ops", Title: "same key, same event", SourceEventID: "alert-1"}.JSON()
		as := func(token, method, path, body string) harness.Answer {
			return s.Do(harness.Call{Base: service.URL(), Method: method, Path: path, Token: token, Key: key, Body: body})
		}

		ours := as(agent, http.MethodPost, "/v1/tickets", body)
		s.Executed("the first account", ours)
		theirs := as(otherAccount, http.MethodPost, "/v1/tickets", body)
		s.Executed("the second account", theirs)
		s.Check(ours.Text("id") != theirs.Text("id") && ours.Header.Get("Operation-Id") != theirs.Header.Get("Operation-Id"),
			"two accounts share a ticket or an operation: %v, %v", ours, theirs)
		s.Replayed("the first account again", as(agent, http.MethodPost, "/v1/tickets", body), ours)
		s.Replayed("the second account again", as(otherAccount, http.MethodPost, "/v1/tickets", body), theirs)

		foreign := as(otherAccount, http.MethodGet, "/v1/tickets/"+ours.Text("id"), "")
		s.Problem("another account's ticket", foreign, http.StatusNotFound, "not-found")
		foreign = as(otherAccount, http.MethodGet, "/v1/operations/"+ours.Header.Get("Operation-Id"), "")
		s.Check(foreign.Status == http.StatusNotFound, "another account's operation: got %v, want 404", foreign)
		own := as(otherAccount, http.MethodGet, "/v1/operations", "")
		s.Check(own.Text("id") == theirs.Header.Get("Operation-Id"), "the operation of the key is %v, want the account's own", own)

		stranger := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Token: "nobody", Key: key, Body: body})
		s.Problem("a caller without a valid token", stranger, http.StatusUnauthorized, "unauthenticated")
		s.Notef("two accounts, one key, one event: two tickets, each replayed to its own account only")
		return 2
	},
}
