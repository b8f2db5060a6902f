package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// Receiver stands where an Alertmanager sends its notifications: it keeps them, as they came, and passes them on. What was really sent is known
// from here, not from the service that is told of it.
type Receiver struct {
	server *http.Server
	url    string
	target string
	client *http.Client

	mu     sync.Mutex
	kept   []Notification
	record *record.Log
	from   string
}

// Notification is one request of an Alertmanager.
type Notification struct {
	Body   []byte
	At     time.Time
	Status int // of the answer that it got; 0: none
}

// NewReceiver listens on 127.0.0.1 in front of a target, like http://127.0.0.1:8081. The caller closes it.
func NewReceiver(target string) (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as receiver: %w", err)
	}
	r := &Receiver{
		url: "http://" + listener.Addr().String(), target: target,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	r.server = &http.Server{Handler: r}
	go r.server.Serve(listener) //nolint:errcheck // it ends with ErrServerClosed, by Close
	return r, nil
}

// Record lets the receiver note what passes it, as what its sender at an address sends to the target.
func (r *Receiver) Record(log *record.Log, from string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record, r.from = log, from
}

// URL is where Alertmanager finds the receiver.
func (r *Receiver) URL() string { return r.url }

// Notifications are those that have been answered, or given up by their sender, in the order in which they came to that.
func (r *Receiver) Notifications() []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Notification(nil), r.kept...)
}

// Close cuts every connection.
func (r *Receiver) Close() error { return r.server.Close() }

// ServeHTTP passes one notification on. Where there is no answer, its sender gets none.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	status, answer := r.forward(request, body)
	r.mu.Lock()
	r.kept = append(r.kept, Notification{Body: body, At: time.Now(), Status: status})
	r.mu.Unlock()
	if status == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// forward ends when the sender gives up.
func (r *Receiver) forward(request *http.Request, body []byte) (status int, answer []byte) {
	r.mu.Lock()
	log, from := r.record, r.from
	r.mu.Unlock()
	m := record.Message{
		From: from, To: strings.TrimPrefix(r.target, "http://"), Method: request.Method, Path: request.URL.RequestURI(), Body: string(body), Sent: time.Now(),
	}
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { m.Conn = got.Conn.LocalAddr().String() },
	})
	a := r.send(ctx, request, body)
	log.Message(answered(m, a))
	if a.Err != nil {
		return 0, nil
	}
	return a.Status, a.Body
}

func (r *Receiver) send(ctx context.Context, request *http.Request, body []byte) Answer {
	onward, err := http.NewRequestWithContext(ctx, request.Method, r.target+request.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return Answer{Err: err}
	}
	onward.Header = request.Header.Clone()
	response, err := r.client.Do(onward)
	if err != nil {
		return Answer{Err: err}
	}
	return read(response)
}
