package faults

import (
	"context"
	"net/http"
)

// heldRequest is one that stands at the proxy.
type heldRequest struct {
	deliver chan bool     // what becomes of it
	ended   chan struct{} // closed when its answer has come, or it is gone
}

// Held is how many requests stand here.
func (p *HTTPProxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// Deliver lets the requests that stand here arrive, and waits for their answers.
func (p *HTTPProxy) Deliver() { p.end(true) }

// Drop forgets the requests that stand here: they never arrive.
func (p *HTTPProxy) Drop() { p.end(false) }

func (p *HTTPProxy) end(deliver bool) {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, h := range held {
		h.deliver <- deliver
		<-h.ended
	}
}

// hold keeps a request until it is said what becomes of it.
func (p *HTTPProxy) hold(w http.ResponseWriter, r *http.Request, body []byte, done func(Answer, error)) {
	h := &heldRequest{deliver: make(chan bool), ended: make(chan struct{})}
	defer close(h.ended)
	p.mu.Lock()
	p.held = append(p.held, h)
	p.fired++
	p.mu.Unlock()
	if !<-h.deliver {
		done(Answer{}, errLost)
		cut(w)
		return
	}
	answer, err := p.forward(context.WithoutCancel(r.Context()), p.targets[0], r, body)
	if err == nil {
		p.mu.Lock()
		p.lost = append(p.lost, answer)
		p.mu.Unlock()
	}
	done(answer, err)
	pass(w, answer, err)
}
