package outbox

import "fmt"

// transition is one labelled way from a state to another.
type transition[S comparable] struct {
	label string
	to    S
}

// model is a finite transition system.
type model[S comparable] interface {
	init() S
	next(s S) []transition[S]
	bad(s S) string // what must never be; "" when the state is fine
	rests(s S) bool // whether it may stay like this for ever
}

// result is what an exhaustive search found. The trace leads to the first violation, and is the shortest.
type result struct {
	states, steps int
	violation     string
	trace         []string
}

// explore visits every reachable state, breadth first. It finds bad states, those with no way on that may not rest, and those
// from which no resting state can be reached any more.
func explore[S comparable](m model[S]) result {
	type from struct {
		parent int
		label  string
	}
	start := m.init()
	index := map[S]int{start: 0}
	states := []S{start}
	via := []from{{-1, ""}}
	back := [][]int32{nil}
	var r result
	found := func(violation string, at int) result {
		r.states, r.violation = len(states), violation
		for ; via[at].parent >= 0; at = via[at].parent {
			r.trace = append([]string{via[at].label}, r.trace...)
		}
		return r
	}
	for i := 0; i < len(states); i++ {
		if v := m.bad(states[i]); v != "" {
			return found(v, i)
		}
		next := m.next(states[i])
		if len(next) == 0 && !m.rests(states[i]) {
			return found(fmt.Sprintf("stuck: %+v", states[i]), i)
		}
		for _, n := range next {
			r.steps++
			j, known := index[n.to]
			if !known {
				j = len(states)
				index[n.to] = j
				states = append(states, n.to)
				via = append(via, from{i, n.label})
				back = append(back, nil)
			}
			back[j] = append(back[j], int32(i))
		}
	}
	if i := neverRests(m, states, back); i >= 0 {
		return found(fmt.Sprintf("no way to rest: %+v", states[i]), i)
	}
	r.states = len(states)
	return r
}

// neverRests returns a state from which no resting one can be reached, or -1.
func neverRests[S comparable](m model[S], states []S, back [][]int32) int {
	reaches := make([]bool, len(states))
	var todo []int32
	for i, s := range states {
		if m.rests(s) {
			reaches[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range back[i] {
			if !reaches[p] {
				reaches[p] = true
				todo = append(todo, p)
			}
		}
	}
	for i := range states {
		if !reaches[i] {
			return i
		}
	}
	return -1
}
