package outbox

import (
	"crypto/tls"
	"errors"
	"net"
)

// FailedSend is the evidence of a send over the network without a whole answer. Only a connection that was never made proves that
// nothing was sent: nobody answered, or who answered could not show to be the target, before anything was told.
func FailedSend(err error) Evidence {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return Evidence{Finding: NotSent, Says: "no connection to the target"}
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return Evidence{Finding: NotSent, Says: "no connection to the target: its certificate is not valid"}
	}
	return FailedAsk(err)
}

// FailedAsk is the evidence of any other call without a whole answer: none.
func FailedAsk(err error) Evidence {
	says := "the connection was lost before the answer was complete"
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		says = "no answer in time"
	}
	return Evidence{Finding: Ambiguous, Says: says}
}
