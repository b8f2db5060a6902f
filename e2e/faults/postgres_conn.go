package faults

import (
	"bufio"
	"net"
	"strings"
	"sync"
)

// Messages of the frontend (a service) and of the backend (PostgreSQL) that matter here.
const (
	frontendQuery   = 'Q'
	frontendParse   = 'P'
	frontendBind    = 'B'
	frontendExecute = 'E'
	frontendSync    = 'S'

	backendCommandComplete = 'C'
	backendReady           = 'Z'
)

// pipelined is how many messages of a service we read ahead while a COMMIT is held: more than any transaction of ours has.
const pipelined = 4096

// pgConn is one connection of a service. Statements are followed by name, since drivers prepare them once and then send the name alone, and
// send a whole transaction's statements without waiting for answers.
type pgConn struct {
	proxy          *PostgresProxy
	client, server net.Conn
	messages       chan pgMessage // what the client said, in order; closed when it has left
	gone           chan struct{}  // closed when the client has left

	prepared    map[string]string // name of a statement → SQL
	portals     map[string]string // name of a portal → SQL
	transaction []string          // SQL executed since the last COMMIT or ROLLBACK
	unsynced    bool              // the server has messages that it answers only after a Sync

	mu     sync.Mutex
	asked  []bool      // for each ReadyForQuery to come: does the client expect it?
	losing *CommitTrap // the answer to the COMMIT that is under way must not arrive
}

func newPgConn(p *PostgresProxy, client, server net.Conn) *pgConn {
	return &pgConn{
		proxy: p, client: client, server: server,
		messages: make(chan pgMessage, pipelined), gone: make(chan struct{}),
		prepared: map[string]string{}, portals: map[string]string{},
	}
}

// run passes messages until either side leaves.
func (c *pgConn) run() {
	defer c.cut()
	from := bufio.NewReader(c.client)
	m, cancel, err := startup(c.client, from)
	if err != nil {
		return
	}
	if _, err := c.server.Write(m.raw); err != nil || cancel {
		return
	}
	c.expect(true) // start-up ends with a ReadyForQuery
	go c.backend()
	go c.listen(from)
	for m := range c.messages {
		if !c.frontend(m) {
			return
		}
	}
}

// cut ends both sides; PostgreSQL rolls back what was open.
func (c *pgConn) cut() {
	reset(c.client)
	_ = c.server.Close()
}

// listen reads ahead of what is passed on, so that we notice a client that dies while its COMMIT is held.
func (c *pgConn) listen(from *bufio.Reader) {
	defer close(c.messages)
	defer close(c.gone)
	for {
		m, err := next(from)
		if err != nil {
			return
		}
		c.messages <- m
	}
}

// frontend passes one message on to the server, or lets a COMMIT meet its fault. It reports whether the connection goes on.
func (c *pgConn) frontend(m pgMessage) bool {
	if sql, executes := c.follow(m); executes {
		switch verb(sql) {
		case "commit", "end":
			trap := c.proxy.trap(c.transaction)
			c.transaction = nil
			if trap != nil && !c.meet(trap) {
				return false
			}
		case "rollback":
			c.transaction = nil
		default:
			c.transaction = append(c.transaction, sql)
		}
	}
	switch m.kind {
	case frontendQuery, frontendSync:
		c.expect(true)
		c.unsynced = false
	default:
		c.unsynced = true
	}
	_, err := c.server.Write(m.raw)
	return err == nil
}

// follow keeps track of names and returns the SQL that a message executes, if it executes any.
func (c *pgConn) follow(m pgMessage) (sql string, executes bool) {
	switch m.kind {
	case frontendQuery:
		return m.texts(1)[0], true
	case frontendParse:
		texts := m.texts(2) // statement, SQL
		c.prepared[texts[0]] = texts[1]
	case frontendBind:
		texts := m.texts(2) // portal, statement
		c.portals[texts[0]] = c.prepared[texts[1]]
	case frontendExecute:
		return c.portals[m.texts(1)[0]], true
	}
	return "", false
}

// meet lets the fault happen before the COMMIT is passed on. It reports whether the connection goes on.
func (c *pgConn) meet(trap *CommitTrap) bool {
	switch trap.fault {
	case CutBeforeCommit:
		c.cut()
		c.proxy.spring(trap)
		return false
	case CutUnderWay:
		reset(c.client)
		c.proxy.spring(trap)
		<-trap.released
		return true
	case CutAfterCommit, LoseServerAtCommit:
		c.mu.Lock()
		c.losing = trap // backend does the rest
		c.mu.Unlock()
		return true
	}
	// Inside a pipeline PostgreSQL waits for the next message with the transaction active. A Sync of our own makes it say, to us, that it is
	// ready, and count as idle in the transaction, as it would between two round trips.
	if c.unsynced {
		c.expect(false)
		if _, err := c.server.Write([]byte{frontendSync, 0, 0, 0, 4}); err != nil {
			return false
		}
	}
	c.proxy.spring(trap)
	select {
	case <-trap.released:
		return true
	case <-c.gone: // the service died; so does its transaction
		return false
	}
}

// backend passes the server's messages on to the client.
func (c *pgConn) backend() {
	defer c.client.Close()
	from := bufio.NewReader(c.server)
	for {
		m, err := next(from)
		if err != nil {
			return
		}
		if lost := c.lost(m); lost != nil {
			if lost.fault == LoseServerAtCommit {
				c.proxy.Refuse()
			}
			c.cut()
			c.proxy.spring(lost)
			return
		}
		if m.kind == backendReady && !c.expected() {
			continue
		}
		if _, err := c.client.Write(m.raw); err != nil {
			return
		}
	}
}

// lost returns the trap if m says that the COMMIT whose answer must not arrive is done.
func (c *pgConn) lost(m pgMessage) *CommitTrap {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.kind == backendCommandComplete && m.texts(1)[0] == "COMMIT" {
		return c.losing
	}
	return nil
}

// expect notes that a ReadyForQuery will come, and whether the client knows.
func (c *pgConn) expect(byClient bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, byClient)
}

// expected tells whether the client expects the ReadyForQuery that has come.
func (c *pgConn) expected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return true
	}
	byClient := c.asked[0]
	c.asked = c.asked[1:]
	return byClient
}

// verb is the first word of a statement, in lower case.
func verb(sql string) string {
	sql = strings.ToLower(strings.TrimLeft(sql, " \t\r\n;"))
	end := strings.IndexFunc(sql, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return sql
	}
	return sql[:end]
}
