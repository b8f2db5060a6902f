package main

import (
	"fmt"
	"regexp"
	"strings"
)

// pattern is what -run takes: a regular expression for each level of subtests.
type pattern []*regexp.Regexp

func compile(text string) (pattern, error) {
	var p pattern
	for level := range strings.SplitSeq(text, "/") {
		expression, err := regexp.Compile(level)
		if err != nil {
			return nil, fmt.Errorf("read pattern %s: %w", text, err)
		}
		p = append(p, expression)
	}
	return p, nil
}

// names says whether a test, or one that it is in, matches every level.
func (p pattern) names(test string) bool {
	levels := strings.Split(test, "/")
	if len(levels) < len(p) {
		return false
	}
	for i, expression := range p {
		if !expression.MatchString(levels[i]) {
			return false
		}
	}
	return true
}
