package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// longest is how many steps a diagram has at most: two screens of them. What a reader looks for in more is chosen by weight.
	longest = 46

	// busy is how many steps in a row say more than their sum: above that, what is alike is gathered.
	busy = 14

	// longestRound is the longest sequence of steps that is folded when it comes again at once: a request and its answer through two proxies.
	longestRound = 6
)

// fold makes one step of equal ones that follow each other, and one round of equal rounds: a caller who asks again and again, or many who ask at once.
func fold(steps []step) []step {
	var folded []step
	for i := 0; i < len(steps); {
		length, rounds := roundsAt(steps[i:])
		for k := range length {
			one := steps[i+k]
			for r := 1; r < rounds; r++ {
				again := steps[i+r*length+k]
				one.merge(again)
			}
			folded = append(folded, one)
		}
		i += length * rounds
	}
	return folded
}

// merge makes the step stand for another that is alike, too.
func (s *step) merge(another step) {
	s.times += another.times
	s.pairs = append(slices.Clip(s.pairs), another.pairs...)
	s.details = append(slices.Clip(s.details), another.details...)
	slices.Sort(s.details)
	s.details = slices.Compact(s.details)
}

// roundsAt finds the round at the beginning that saves most when its repetitions are folded.
func roundsAt(steps []step) (length, rounds int) {
	length, rounds = 1, 1
	for l := 1; l <= longestRound && 2*l <= len(steps); l++ {
		if l > 1 && !isRound(steps[:l]) {
			continue
		}
		n := 1
		for (n+1)*l <= len(steps) && slices.EqualFunc(steps[:l], steps[n*l:(n+1)*l], alike) {
			n++
		}
		if (n-1)*l > (rounds-1)*length {
			length, rounds = l, n
		}
	}
	return length, rounds
}

// isRound tells whether steps begin with a request and end with an answer, as what somebody repeats does.
func isRound(steps []step) bool {
	first, last := steps[0], steps[len(steps)-1]
	return !first.isMark() && !first.answer && last.answer
}

// alike tells whether two steps say the same, but for the keys that they are about.
func alike(a, b step) bool {
	return a.from == b.from && a.to == b.to && a.label == b.label && a.tone == b.tone && a.answer == b.answer && a.lost == b.lost &&
		(len(a.details) == 0) == (len(b.details) == 0) && a.omitted == 0 && b.omitted == 0
}

// gather makes one step of all that are alike in a long stretch in which nothing of interest happens: sixteen senders at work, sixty-four callers who
// hear the same. Each stays where the first of them was.
func gather(steps []step) []step {
	var gathered []step
	for i := 0; i < len(steps); {
		end := i + stretchAt(steps[i:])
		if end-i <= busy {
			gathered = append(gathered, steps[i:end]...)
			i = end
			continue
		}
		begin := len(gathered)
		for _, one := range steps[i:end] {
			first := slices.IndexFunc(gathered[begin:], func(known step) bool { return alike(known, one) })
			if first < 0 {
				gathered = append(gathered, one)
			} else {
				gathered[begin+first].merge(one)
			}
		}
		i = end
	}
	return gathered
}

// stretchAt is how many steps at the beginning are one stretch: until something interesting happens, a process comes or goes, or a caller begins with
// another key.
func stretchAt(steps []step) int {
	key := ""
	for i, s := range steps {
		callersKey := strings.HasPrefix(s.from, "caller") && len(s.details) == 1
		if i > 0 && (s.parts() || steps[0].parts() || callersKey && key != "" && s.details[0] != key) {
			return i
		}
		if callersKey {
			key = s.details[0]
		}
	}
	return len(steps)
}

// choose leaves out what is of the least interest in a long sequence, and says in its place how much that was. Faults stay, and how it began and ended.
func choose(steps []step) []step {
	if len(steps) > longest {
		steps = gather(steps)
	}
	if len(steps) <= longest {
		return steps
	}
	requests := map[int]int{} // exchange → the step with its request
	for i, s := range steps {
		for _, pair := range s.pairs {
			if _, known := requests[pair]; !known {
				requests[pair] = i
			}
		}
	}
	kept := map[int]bool{}
	for _, i := range byInterest(steps) {
		if len(kept) >= longest {
			break
		}
		kept[i] = true
		if !steps[i].isMark() {
			kept[requests[steps[i].pairs[0]]] = true // an answer to nothing says nothing
		}
	}
	var chosen []step
	for i := 0; i < len(steps); i++ {
		end := i
		for end < len(steps) && !kept[end] {
			end++
		}
		const worth = 3 // as many steps take less room than the line that would say that they are left out
		if end-i < worth {
			end = i + 1
			chosen = append(chosen, steps[i])
		} else {
			chosen = append(chosen, omission(steps[i:end]))
		}
		i = end - 1
	}
	return chosen
}

// byInterest are the indexes of the steps as they are to be kept: effects and what happens around faults, most of it from the beginning on and the rest from the
// end, and then everything else.
func byInterest(steps []step) (order []int) {
	const (
		around = 5               // steps before and after a fault that show what it did
		early  = longest * 3 / 4 // the first faults are shown whole; those in the middle are most often the same again
	)
	var near, far []int
	for i := range steps {
		from, to := max(0, i-around), min(len(steps), i+around+1)
		if from == 0 || to == len(steps) || steps[i].tone == effect || slices.ContainsFunc(steps[from:to], step.interesting) {
			near = append(near, i)
		} else {
			far = append(far, i)
		}
	}
	first := min(early, len(near))
	order = append(order, near[:first]...)
	for _, i := range slices.Backward(near[first:]) {
		order = append(order, i)
	}
	return append(order, far...)
}

// interesting tells whether the step is what a reader looks for: a fault, what it cost, or a refusal.
func (s step) interesting() bool {
	return s.isMark() && !s.dull && s.tone != effect || s.lost || s.tone == refuse
}

// parts tells whether the step ends a stretch of others.
func (s step) parts() bool { return s.interesting() || s.isMark() && s.tone != effect }

// omission stands for steps that are not drawn.
func omission(steps []step) step {
	gap := step{at: steps[0].at}
	kinds := map[string]int{}
	for _, s := range steps {
		gap.omitted += s.times
		kinds[s.label] += s.times
	}
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b], kinds[a]), strings.Compare(a, b))
	})
	const most = 3
	var parts []string
	for _, name := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%d × %s", kinds[name], name))
	}
	if len(names) > most {
		parts = append(parts, "…")
	}
	gap.label = fmt.Sprintf("%d left out: %s", gap.omitted, strings.Join(parts, ", "))
	return gap
}
