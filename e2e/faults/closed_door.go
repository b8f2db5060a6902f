package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// ClosedDoor is an address in front of a service where connections are begun and not accepted: whoever comes waits in connect, before the first byte of
// a request. Opened, it passes on what the service and its callers say to each other.
type ClosedDoor struct {
	listener net.Listener
	target   string     // host and port
	fillers  []net.Conn // ours, that keep the queue of the listener full

	mu     sync.Mutex
	conns  []net.Conn
	came   int
	left   int
	record *record.Log
}

// NewClosedDoor listens on 127.0.0.1 in front of a service at host and port.
func NewClosedDoor(target string) (*ClosedDoor, error) {
	listener, err := listenShort()
	if err != nil {
		return nil, fmt.Errorf("listen behind a closed door: %w", err)
	}
	d := &ClosedDoor{listener: listener, target: target}
	// The system completes connections by itself until the queue of those to accept is full, and drops what comes then. Callers try again, after
	// one second, three, seven.
	const most, complete = 16, 100 * time.Millisecond
	for range most {
		conn, err := (&net.Dialer{Timeout: complete}).DialContext(context.Background(), "tcp", listener.Addr().String())
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return d, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("close the door: %w", err), d.Close())
		}
		d.fillers = append(d.fillers, conn)
	}
	return nil, errors.Join(fmt.Errorf("close the door: %d connections were completed", most), d.Close())
}

// URL is where callers find the door.
func (d *ClosedDoor) URL() string { return "http://" + d.listener.Addr().String() }

// Record lets the door note that it is closed, and when it is opened.
func (d *ClosedDoor) Record(log *record.Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = log
	log.Place(record.Place{Address: d.address(), Kind: record.Proxy, Name: "closed door", Before: []string{d.target}})
	log.Mark(d.address(), record.Struck, "who connects waits")
}

func (d *ClosedDoor) address() string { return d.listener.Addr().String() }

// Open accepts who has waited and who comes.
func (d *ClosedDoor) Open() {
	d.mu.Lock()
	d.record.Mark(d.address(), record.Healed, "opened")
	d.mu.Unlock()
	go func() {
		for range d.fillers {
			if conn, err := d.listener.Accept(); err == nil {
				conn.Close()
			}
		}
		for {
			conn, err := d.listener.Accept()
			if err != nil {
				return
			}
			go d.pass(conn)
		}
	}()
}

// Came is how many connections of others have been completed since it was opened.
func (d *ClosedDoor) Came() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.came
}

// Left is how many of them have ended, with all that was said on them.
func (d *ClosedDoor) Left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// Close cuts every connection.
func (d *ClosedDoor) Close() error {
	err := d.listener.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range append(d.fillers, d.conns...) {
		conn.Close()
	}
	return err
}

// pass lets a caller and the service talk.
func (d *ClosedDoor) pass(caller net.Conn) {
	defer caller.Close()
	service, err := new(net.Dialer).DialContext(context.Background(), "tcp", d.target) // it lives as long as its caller's does
	if err != nil {
		return
	}
	defer service.Close()
	d.mu.Lock()
	d.conns = append(d.conns, caller, service)
	d.came++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left++
	}()
	go func() {
		_, _ = io.Copy(service, caller) // either side may end it
		_ = service.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(caller, service)
}

// listenShort listens with the shortest queue there is; net.Listen asks for the longest.
func listenShort() (net.Listener, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd) // a process that is started meanwhile must not keep the port
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close() // FileListener has a copy of its own
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	if err := syscall.Listen(fd, 0); err != nil {
		return nil, err
	}
	return net.FileListener(file)
}
