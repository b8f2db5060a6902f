package deployments

import (
	_ "crypto/sha256" // go-digest knows the algorithms that are linked in
	_ "crypto/sha512"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/einmal/einmal/pkg/problem"
)

// maxArtifact has room for the longest name that registries take (255), a long host and a sha512.
const maxArtifact = 1024 // bytes

// gitScheme begins an artifact that is a commit.
const gitScheme = "git+https://"

var (
	commit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) // SHA-1, or the repository format of SHA-256

	// looksLikeCommit is what somebody means as one: too short, too long, or in upper case.
	looksLikeCommit = regexp.MustCompile(`^[0-9a-fA-F]{7,}$`)
)

// What to do, for those who sent another name.
const (
	artifactRule = "must be name@sha256:… with the digest of an image, or git+https://…@… with a full commit id"

	howToDigest = "Deploy what can't change: name@sha256:… . `docker buildx imagetools inspect NAME:TAG` prints the digest that a tag " +
		"points to now, as does `crane digest NAME:TAG`; better, take the one that the build has printed."
	howToCommit = "Deploy what can't change: git+https://…@COMMIT with a full commit id. `git rev-parse REF` prints the commit that a branch " +
		"or tag points to now, `git ls-remote URL REF` does so without a clone."
)

// parseArtifact returns the name of an artifact as it is deployed: what names it for good, without a tag that stands beside the digest.
// Its errors are *problem.Problem: mutable-reference and invalid-digest with how to get a digest, or validation-failed.
func parseArtifact(text string) (string, error) {
	switch {
	case text == "" || len(text) > maxArtifact || strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' }):
		return "", wrongArtifact(problem.ValidationFailed, artifactRule+": 1 to 1024 visible ASCII characters", "")
	case strings.HasPrefix(text, gitScheme):
		return parseCommit(text)
	case strings.Contains(text, "://"):
		return "", wrongArtifact(problem.ValidationFailed, artifactRule+"; another scheme than git+https is not known", "")
	}
	return parseImage(text)
}

func parseImage(text string) (string, error) {
	name, sum, pinned := strings.Cut(text, "@")
	if !pinned {
		algorithm, hex, ok := strings.Cut(text, ":")
		switch {
		case ok && isAlgorithm(algorithm) && looksLikeCommit.MatchString(hex):
			return "", wrongArtifact(problem.InvalidDigest, "is a digest without the name of its image: put NAME@ in front of it", howToDigest)
		case commit.MatchString(text):
			return "", wrongArtifact(problem.InvalidDigest, "is a commit id without its repository: put git+https://HOST/PATH@ in front of it", howToCommit)
		}
		return "", wrongArtifact(problem.MutableReference, "names an image by what can point to another one tomorrow", howToDigest)
	}
	if err := checkDigest(sum); err != nil {
		return "", wrongArtifact(problem.InvalidDigest, err.Error(), howToDigest)
	}
	parsed, err := reference.Parse(name + "@" + sum)
	named, ok := parsed.(reference.Named)
	if err != nil || !ok {
		return "", wrongArtifact(problem.ValidationFailed, artifactRule+"; what stands before the @ is no name of an image (lower case, without a scheme)", "")
	}
	return named.Name() + "@" + sum, nil
}

func isAlgorithm(name string) bool {
	return name == string(digest.SHA256) || name == string(digest.SHA512)
}

// checkDigest says what is wrong with a digest.
func checkDigest(sum string) error {
	algorithm, hex, ok := strings.Cut(sum, ":")
	switch {
	case !ok:
		return errors.New("has no algorithm: after the @ comes sha256: and 64 lower-case hexadecimal digits")
	case !isAlgorithm(algorithm):
		return errors.New("has another algorithm than sha256 and sha512")
	case digest.Digest(sum).Validate() == nil:
		return nil
	case len(hex) != digest.Algorithm(algorithm).Size()*2:
		return errors.New("has a digest of another length: sha256 has 64 hexadecimal digits, sha512 128")
	}
	return errors.New("has a digest of other characters than 0-9 and a-f")
}

func parseCommit(text string) (string, error) {
	at := strings.LastIndexByte(text, '@')
	repository, id := text, ""
	if at > 0 {
		repository, id = text[:at], text[at+1:]
	}
	u, err := url.Parse(strings.TrimPrefix(repository, "git+"))
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(repository, "?#") || strings.Trim(u.Path, "/") == "" {
		return "", wrongArtifact(problem.ValidationFailed, artifactRule+"; the repository is a URL of a host and a path, without a user", "")
	}
	switch {
	case commit.MatchString(id):
		return text, nil
	case looksLikeCommit.MatchString(id):
		return "", wrongArtifact(problem.InvalidDigest, "has a commit id that is not 40 or 64 lower-case hexadecimal digits", howToCommit)
	}
	return "", wrongArtifact(problem.MutableReference, "names a commit by what can point to another one tomorrow", howToCommit)
}

// wrongArtifact is the refusal of an artifact.
func wrongArtifact(code problem.Code, says, advice string) *problem.Problem {
	violation := problem.Violation{Pointer: "/artifact", Detail: says}
	if code == problem.ValidationFailed {
		return problem.Invalid(violation)
	}
	p := problem.New(code, "The artifact "+says+". "+advice)
	p.Errors = []problem.Violation{violation}
	return p
}
