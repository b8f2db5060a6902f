package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/record"
)

// HTTPFault is what happens to one request on its way.
type HTTPFault int

const (
	LoseRequest HTTPFault = iota + 1 // the connection is cut before the request is passed on
	LoseAnswer                       // the service answers; the connection is cut before the answer is passed on
	Resend                           // the same bytes go to every target at once, as from an impatient gateway; the first target's answer is passed on
	BareAnswer                       // status and headers are passed on, the body is not
	HalfAnswer                       // the connection is cut in the middle of the body
	HoldRequest                      // the request has left its caller and stands here until Deliver or Drop, whether or not the caller still waits
)

// Answer is one answer of a service as the proxy saw it.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// HTTPProxy passes requests on to the first of its targets, except those a fault is waiting for.
type HTTPProxy struct {
	server  *http.Server
	url     string
	targets []string
	client  *http.Client

	mu     sync.Mutex
	next   []HTTPFault
	every  HTTPFault // what every second request meets, beginning with the coming one; 0: nothing
	second bool      // the coming request is one of the others
	keys   map[string]int
	held   []*heldRequest
	lost   []Answer
	fired  int
	record *record.Log
}

// NewHTTPProxy listens on 127.0.0.1 in front of the targets, each like http://127.0.0.1:8081.
func NewHTTPProxy(targets ...string) (*HTTPProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as HTTP proxy: %w", err)
	}
	p := &HTTPProxy{
		url:     "http://" + listener.Addr().String(),
		targets: targets,
		keys:    map[string]int{},
		// net/http sends a POST with an Idempotency-Key again when a kept connection turns out dead. The only copies here are those we mean.
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	p.server = &http.Server{Handler: p}
	go p.server.Serve(listener) //nolint:errcheck // it ends with ErrServerClosed, by Close
	return p, nil
}

// URL is where callers find the proxy.
func (p *HTTPProxy) URL() string { return p.url }

// Next makes the coming requests meet these faults, one each, in this order. Later ones pass.
func (p *HTTPProxy) Next(faults ...HTTPFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, faults...)
}

// EverySecond makes every second of the coming requests meet a fault, beginning with the next one, besides those that Next has named. 0 ends that.
func (p *HTTPProxy) EverySecond(fault HTTPFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every, p.second = fault, false
}

// Writes is how many requests have come that carry this Idempotency-Key and may change something, those that were lost here included.
func (p *HTTPProxy) Writes(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key]
}

// Lost are the answers that services gave and no caller received, or one that has long given up.
func (p *HTTPProxy) Lost() []Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Answer(nil), p.lost...)
}

// Fired is how many requests have met a fault.
func (p *HTTPProxy) Fired() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// Close cuts every connection.
func (p *HTTPProxy) Close() error {
	p.Drop()
	return p.server.Close()
}

// ServeHTTP lets one request meet its fault.
func (p *HTTPProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w)
		return
	}
	fault := p.take(r)
	done := p.recorded(r, body, fault)
	switch fault {
	case LoseRequest:
		p.count()
		done(Answer{}, errLost)
		cut(w)
	case LoseAnswer:
		// The caller hears nothing and may hang up; the service is to finish all the same.
		answer, err := p.forward(context.WithoutCancel(r.Context()), p.targets[0], r, body)
		if err == nil {
			p.count(answer)
		}
		done(Answer{}, errLost)
		cut(w)
	case BareAnswer, HalfAnswer:
		answer, err := p.forward(context.WithoutCancel(r.Context()), p.targets[0], r, body)
		if err == nil {
			p.count(answer)
		}
		done(answer, err)
		answer.Body = answer.Body[:len(answer.Body)/2]
		if fault == HalfAnswer {
			pass(w, answer, err) // Content-Length says that there is more
			cut(w)
			return
		}
		answer.Body = nil
		answer.Header.Del("Content-Length")
		pass(w, answer, err)
	case Resend:
		answer, err := p.resend(r, body)
		done(answer, err)
		pass(w, answer, err)
	case HoldRequest:
		p.hold(w, r, body, done)
	default:
		answer, err := p.forward(r.Context(), p.targets[0], r, body)
		done(answer, err)
		pass(w, answer, err)
	}
}

// resend sends the request to all targets at once and returns the first one's answer.
func (p *HTTPProxy) resend(r *http.Request, body []byte) (Answer, error) {
	answers := make([]Answer, len(p.targets))
	errs := make([]error, len(p.targets))
	var all sync.WaitGroup
	for i, target := range p.targets {
		all.Go(func() { answers[i], errs[i] = p.forward(r.Context(), target, r, body) })
	}
	all.Wait()
	p.count(answers[1:]...)
	return answers[0], errs[0]
}

// take removes the fault that waits for this request, 0 if none does.
func (p *HTTPProxy) take(r *http.Request) HTTPFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := r.Header.Get("Idempotency-Key"); key != "" && r.Method != http.MethodGet {
		p.keys[key]++
	}
	if len(p.next) == 0 && p.every != 0 {
		if p.second = !p.second; p.second {
			return p.every
		}
	}
	if len(p.next) == 0 {
		return 0
	}
	fault := p.next[0]
	p.next = p.next[1:]
	return fault
}

// count counts a fault that happened and keeps the answers that it cost.
func (p *HTTPProxy) count(lost ...Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired++
	p.lost = append(p.lost, lost...)
}

func (p *HTTPProxy) forward(ctx context.Context, target string, r *http.Request, body []byte) (Answer, error) {
	done := p.recordedForward(target, r, body)
	answer, err := p.send(ctx, target, r, body)
	done(answer, err)
	return answer, err
}

func (p *HTTPProxy) send(ctx context.Context, target string, r *http.Request, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header = r.Header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, received}, err
}

// pass gives the caller the answer, or what a caller sees of a service that gave none: a cut connection.
func pass(w http.ResponseWriter, answer Answer, err error) {
	if err != nil {
		cut(w)
		return
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	w.Write(answer.Body) //nolint:errcheck // a caller who has left misses its answer
}

// cut ends the caller's connection with a reset instead of an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server's own way to cut a connection
	}
	reset(conn)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // close with a reset, as a dying machine's router would
	}
	_ = conn.Close()
}
