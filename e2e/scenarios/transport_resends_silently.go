package scenarios

import (
	"io"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/faults"
)

var transportResendsSilently = Scenario{
	Name:    "transport_resends_silently",
	Promise: "Each attempt of an agent is one request: where Go's own client sends a POST again because a kept connection has died, the agent asks.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			e.Spare()
			trusting := e.trustsTheTransport()

			e.proxy.Next(0, faults.LoseAnswer) // the second request of whoever keeps its connection
			e.Lose()
			e.EndsAll("the agent", e.Do(e.opens("first"), e.opens("second")), 2)
			for _, entry := range e.Entries() {
				attempts, writes := len(entry.Attempts()), e.proxy.Writes(entry.Key)
				e.Check(attempts == writes, "step %s: %d requests have arrived, %d attempts are in the journal", entry.Step, writes, attempts)
				e.OneTicket("of a step", entry)
			}
			e.Notef("a client that trusts net/http sent %d requests where it knew of one", trusting)
			return 2 + 2
		})
	},
}

// trustsTheTransport lets Go's own client send two requests with keys, the answer to the second of which is lost, and returns how often that one was sent.
func (e *Errand) trustsTheTransport() int {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	e.proxy.Next(0, faults.LoseAnswer)
	key := ""
	for range 2 {
		key = e.NewKey()
		request, err := http.NewRequestWithContext(e.ctx, http.MethodPost, e.proxy.URL()+"/v1/tickets", strings.NewReader(e.NewTicket().JSON()))
		e.must(err)
		request.Header.Set("Authorization", "Bearer "+agent)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
		response, err := transport.RoundTrip(request)
		e.must(err)
		_, err = io.Copy(io.Discard, response.Body)
		e.must(err)
		e.must(response.Body.Close())
	}
	sent := e.proxy.Writes(key)
	e.Check(sent == 2, "net/http has sent %d requests, want 2: is there still something to prevent?", sent)
	return sent
}
