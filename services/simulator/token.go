package simulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// tokens are the digests of the two bearer tokens. Comparing digests says nothing about a token by how long it takes.
type tokens struct {
	write, read [sha256.Size]byte
}

func newTokens(config Config) tokens {
	return tokens{sha256.Sum256([]byte(config.Token)), sha256.Sum256([]byte(config.ReadToken))}
}

// allow reports whether the request carries a token for what it asks; looking up needs only the read token. basic: it may be
// the user name of basic authentication, too.
func (t tokens) allow(r *http.Request, reads, basic bool) bool {
	lines := r.Header.Values("Authorization")
	if len(lines) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if user, _, sent := r.BasicAuth(); sent && basic {
		scheme, token = "Bearer", user
	}
	sent := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") &&
		(subtle.ConstantTimeCompare(sent[:], t.write[:]) == 1 || reads && subtle.ConstantTimeCompare(sent[:], t.read[:]) == 1)
}
