package simulator

import (
	"log/slog"
	"net"
	"net/http"
	"time"
)

// retryAfter is what a refusal for the moment says, in seconds: short, as scenarios are.
const retryAfter = "1"

// strike does to a request what the fault says, and reports whether there is anything left to do for it: after a delay. It
// may end the handler with http.ErrAbortHandler, on which the server closes the connection without a word.
func (s *Service) strike(w http.ResponseWriter, r *http.Request, f *Fault) (goOn bool) {
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "fault struck", slog.String("target", f.Target), slog.String("fault", f.ID),
		slog.String("action", string(f.Action)), slog.String("when", string(f.When)), slog.String("route", r.Pattern))
	switch f.Action {
	case Hang:
		select {
		case <-r.Context().Done(): // the caller has left
		case <-s.stopping:
		}
		panic(http.ErrAbortHandler)
	case Reset:
		reset(w)
	case Status:
		f.answer(w, r)
	case Delay:
		return s.delay(f)
	default: // Lose
		panic(http.ErrAbortHandler)
	}
	return false
}

// delay waits, whether or not the caller still does. A server that stops ends it as a crash would: nothing more is done.
func (s *Service) delay(f *Fault) (goOn bool) {
	timer := time.NewTimer(time.Duration(f.DelayMS) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopping:
		panic(http.ErrAbortHandler)
	}
}

// reset ends the connection so that the caller's system says "connection reset by peer".
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the connection is gone already
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close sends RST instead of FIN; it fails only on a connection that is closed
	}
	conn.Close()
}

// answer gives the fault's answer instead of the target's.
func (f *Fault) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case f.Status < 400: // a caller that follows it sends again
		w.Header().Set("Location", r.URL.RequestURI())
	case f.Status == http.StatusTooManyRequests, f.Status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	}
	f.instead().write(w)
}

// wordless is a fault in no words of which anything follows: it may come before the effect or after it.
func wordless(f *Fault, detail string) Answer { return turnedAway(f.Status, codeError, detail) }

// instead is the fault's answer in the place of the target's.
func (f *Fault) instead() Answer {
	detail := http.StatusText(f.Status)
	if detail == "" {
		detail = "Something went wrong."
	}
	t, err := targetNamed(f.Target)
	if err != nil {
		panic(err) // it was armed for a target
	}
	return t.fault(f, detail)
}
