package harness

import (
	"fmt"
	"net"
	"sync"
)

// portAttempts bounds how often a process is started on another port because somebody took the free one that we had found.
const portAttempts = 5

// given are the ports that freeAddress has found. They are the machine's, and scenarios are played at once: the port of a process that is about to listen looks
// free to the next one, which would then take the other's readiness for its own.
var given sync.Map

func freeAddress() (string, error) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		address := listener.Addr().String()
		listener.Close()
		if _, before := given.LoadOrStore(address, true); !before {
			return address, nil
		}
	}
}
