package faults

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// errLost is why the sender of a request gets no answer that there was, or could have been.
var errLost = errors.New("the proxy cut the connection")

// recordedAs is what a recording says of a fault.
var recordedAs = map[HTTPFault]record.Fault{
	LoseRequest: record.RequestLost, LoseAnswer: record.AnswerLost, Resend: record.Resent, HoldRequest: record.Held,
	BareAnswer: record.AnswerCut, HalfAnswer: record.AnswerCut,
}

// Record lets the proxy note what passes it.
func (p *HTTPProxy) Record(log *record.Log) {
	place := record.Place{Address: strings.TrimPrefix(p.url, "http://"), Kind: record.Proxy, Name: "HTTP proxy"}
	for _, target := range p.targets {
		place.Before = append(place.Before, strings.TrimPrefix(target, "http://"))
	}
	log.Place(place)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = log
}

// CalledBy says whose requests come here: a process that records nothing itself, by the address of its place.
func (p *HTTPProxy) CalledBy(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caller = address
}

// recorded notes a request as it came. The caller gives done what becomes of it.
func (p *HTTPProxy) recorded(r *http.Request, body []byte, fault HTTPFault) (done func(Answer, error)) {
	m := p.message(p.url, r, body)
	m.Conn, m.Fault = r.RemoteAddr, recordedAs[fault]
	p.mu.Lock()
	m.From = p.caller
	p.mu.Unlock()
	return p.noted(m)
}

// recordedForward notes a request as it is passed on.
func (p *HTTPProxy) recordedForward(target string, r *http.Request, body []byte) (done func(Answer, error)) {
	m := p.message(target, r, body)
	m.From = strings.TrimPrefix(p.url, "http://")
	return p.noted(m)
}

func (p *HTTPProxy) message(to string, r *http.Request, body []byte) record.Message {
	return record.Message{
		To: strings.TrimPrefix(to, "http://"), Method: r.Method, Path: r.URL.RequestURI(),
		Key: r.Header.Get("Idempotency-Key"), Body: string(body), Sent: time.Now(),
	}
}

func (p *HTTPProxy) noted(m record.Message) (done func(Answer, error)) {
	p.mu.Lock()
	log := p.record
	p.mu.Unlock()
	return func(a Answer, err error) {
		m.Ended, m.Status, m.Outcome, m.Said = time.Now(), a.Status, a.Header.Get("Idempotency-Outcome"), string(a.Body)
		if err != nil {
			m.Status, m.Err = 0, err.Error()
		}
		log.Message(m)
	}
}
