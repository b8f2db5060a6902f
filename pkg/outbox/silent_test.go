package outbox

import (
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// A server that is gone without a word, as behind a cut cable, answers nothing on the connections there are. The workers of an outbox
// must not wait for it until the operating system gives up, after a quarter of an hour.
func TestADatabaseThatHasGoneSilentKeepsNoWorker(t *testing.T) {
	t.Parallel()
	proxy := startSilentProxy(t, dbtest.URL(t, database.Postgres))
	defer proxy.cut()
	s := newStage(t, proxy.url, keyed)
	s.target.Lease = 2 * time.Second
	s.build()
	s.box.pollEvery = 20 * time.Millisecond
	e := s.accept("k")
	settled := s.box.Settled(e.OperationID)
	proxy.silent.Add(1)
	s.run()
	receive(t, settled, "the effect, sent over another connection")
}

// Nor must the looks for what is overdue wait: behind one of them are all others.
func TestADatabaseThatHasGoneSilentKeepsNoLook(t *testing.T) {
	t.Parallel()
	proxy := startSilentProxy(t, dbtest.URL(t, database.Postgres))
	defer proxy.cut()
	s := newStage(t, proxy.url, keyed)
	for name, look := range map[string]func(ctx context.Context) error{
		"approvals": s.box.expireApprovals, "reviews": s.box.escalate,
		"a take that was lost": func(ctx context.Context) error { return s.box.lostTake(ctx, s.target, Effect{ApprovalID: "apr_x"}) },
	} {
		s.ok(s.db.Ping(t.Context())) // over a connection that there is from now on
		proxy.silent.Add(1)
		ended := make(chan error, 1)
		go func() { ended <- look(t.Context()) }()
		if err := receive(t, ended, name); err == nil {
			t.Errorf("%s: answered by a server that is silent", name)
		}
	}
}

// silentProxy stands between a pool and PostgreSQL. With each number that silent gets, the connections from before are passed nothing
// any more.
type silentProxy struct {
	url    string
	silent atomic.Int64
	over   chan struct{}
}

// cut ends the connections that are silent.
func (p *silentProxy) cut() { close(p.over) }

func startSilentProxy(t *testing.T, direct string) *silentProxy {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	server := u.Host
	u.Host = listener.Addr().String()
	p := &silentProxy{url: u.String(), over: make(chan struct{})}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			began := p.silent.Load()
			speaks := func([]byte) bool {
				if p.silent.Load() != began {
					<-p.over
					return false
				}
				return true
			}
			go pass(upstream, client, speaks)
			go pass(client, upstream, speaks)
		}
	}()
	return p
}
