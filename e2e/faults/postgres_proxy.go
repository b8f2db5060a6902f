package faults

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/einmal/einmal/e2e/record"
)

// CommitFault is what happens to one COMMIT on its way to PostgreSQL.
type CommitFault int

const (
	CutBeforeCommit    CommitFault = iota + 1 // the connection is cut before the COMMIT is passed on: nothing happened
	CutAfterCommit                            // PostgreSQL commits; the connection is cut before it can say so
	LoseServerAtCommit                        // PostgreSQL commits; from then on nobody reaches it, until Accept
	HoldCommit                                // the COMMIT is held back until Release, with its transaction open and idle
	CutUnderWay                               // the connection is cut for the service alone; the COMMIT reaches PostgreSQL at Release
)

// PostgresProxy passes on what a service and its PostgreSQL say to each other, and can do something to a COMMIT. It understands as much of
// the protocol as that takes: https://www.postgresql.org/docs/current/protocol-message-formats.html
type PostgresProxy struct {
	listener net.Listener
	server   string // address of the real server

	mu       sync.Mutex
	conns    map[*pgConn]bool
	traps    []*CommitTrap // armed, oldest first
	refusing bool
	fired    int
	record   *record.Log
}

// CommitTrap waits for the COMMIT of a transaction that executed a certain statement.
type CommitTrap struct {
	fault    CommitFault
	touching string
	sprung   chan struct{} // closed when the fault has happened
	released chan struct{} // closed when a held COMMIT may go on
	release  sync.Once
}

// NewPostgresProxy listens on 127.0.0.1 in front of the server of a URL like postgres://user@127.0.0.1:5432/db.
func NewPostgresProxy(server string) (*PostgresProxy, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("read PostgreSQL URL: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as PostgreSQL proxy: %w", err)
	}
	p := &PostgresProxy{listener: listener, server: net.JoinHostPort(u.Hostname(), port), conns: map[*pgConn]bool{}}
	go p.accept()
	return p, nil
}

// Through is a database's URL with the proxy in place of its server. The proxy reads along, so it refuses TLS.
func (p *PostgresProxy) Through(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("read PostgreSQL URL: %w", err)
	}
	u.Host = p.listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// AtCommit lets the fault happen to the next COMMIT of a transaction with a statement that contains touching, once. Neither case nor quotation
// marks count.
func (p *PostgresProxy) AtCommit(fault CommitFault, touching string) *CommitTrap {
	trap := &CommitTrap{fault: fault, touching: plain(touching), sprung: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, trap)
	return trap
}

// Wait waits until the fault has happened.
func (t *CommitTrap) Wait(ctx context.Context) error {
	select {
	case <-t.sprung:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the COMMIT of a transaction with %q: %w", t.touching, ctx.Err())
	}
}

// Release lets a held COMMIT go on.
func (t *CommitTrap) Release() { t.release.Do(func() { close(t.released) }) }

// String says what the fault does.
func (f CommitFault) String() string {
	return [...]string{
		CutBeforeCommit:    "connection cut before COMMIT",
		CutAfterCommit:     "connection cut after COMMIT, before its answer",
		LoseServerAtCommit: "server out of reach after COMMIT, before its answer",
		HoldCommit:         "COMMIT held",
		CutUnderWay:        "connection cut with COMMIT under way",
	}[f]
}

// Record lets the proxy note the faults that happen at it. What else it passes on is not HTTP, and not noted.
func (p *PostgresProxy) Record(log *record.Log) {
	log.Place(record.Place{Address: p.address(), Kind: record.Proxy, Name: "PostgreSQL proxy", Before: []string{p.server}})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = log
}

// mark notes something that happened here. The caller holds mu.
func (p *PostgresProxy) mark(event record.Event, text string) {
	p.record.Mark(p.address(), event, text)
}

func (p *PostgresProxy) address() string { return p.listener.Addr().String() }

// Refuse cuts every connection and refuses new ones, until Accept.
func (p *PostgresProxy) Refuse() {
	p.mu.Lock()
	p.refusing = true
	cut := p.open()
	p.fired += len(cut)
	p.mark(record.Struck, fmt.Sprintf("all connections cut (%d), new ones refused", len(cut)))
	p.mu.Unlock()
	for _, c := range cut {
		c.cut()
	}
}

// Accept ends Refuse.
func (p *PostgresProxy) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
	p.mark(record.Healed, "connections accepted again")
}

// Fired is how many COMMITs have met a fault and how many connections were cut or refused.
func (p *PostgresProxy) Fired() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// Close cuts every connection.
func (p *PostgresProxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	cut := p.open()
	p.mu.Unlock()
	for _, c := range cut {
		c.cut()
	}
	return err
}

func (p *PostgresProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if p.refuses() {
			reset(client)
			continue
		}
		go p.connect(client)
	}
}

func (p *PostgresProxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing {
		p.fired++
	}
	return p.refusing
}

func (p *PostgresProxy) connect(client net.Conn) {
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server) // it lives as long as its client does
	if err != nil {
		reset(client)
		return
	}
	c := newPgConn(p, client, server)
	p.mu.Lock()
	if p.refusing { // since we accepted it
		p.fired++
		p.mu.Unlock()
		c.cut()
		return
	}
	p.conns[c] = true
	p.mu.Unlock()

	c.run()

	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// trap takes the armed trap that waits for a transaction with these statements, nil if none does.
func (p *PostgresProxy) trap(statements []string) *CommitTrap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, trap := range p.traps {
		if slices.ContainsFunc(statements, func(s string) bool { return strings.Contains(plain(s), trap.touching) }) {
			p.traps = slices.Delete(p.traps, i, i+1)
			return trap
		}
	}
	return nil
}

func plain(sql string) string { return strings.ToLower(strings.ReplaceAll(sql, `"`, "")) }

// spring counts a fault that happened and tells who waits for it.
func (p *PostgresProxy) spring(trap *CommitTrap) {
	p.mu.Lock()
	p.fired++
	p.mark(record.Struck, trap.fault.String())
	p.mu.Unlock()
	close(trap.sprung)
}

// open lists the connections. The caller holds mu.
func (p *PostgresProxy) open() []*pgConn {
	var all []*pgConn
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}
