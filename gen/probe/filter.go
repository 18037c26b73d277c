package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Filter selects results. The zero value selects all.
type Filter struct {
	terms []term
	// Answers is true if the filter has a condition on the kind of answer. Then only the filter decides which answers
	// are results.
	Answers bool
}

// term is one condition. A result must fulfil all conditions of a filter.
type term struct {
	field    string
	operator string
	numbers  []float64      // values with which a numeric field of the result is compared
	prefixes []netip.Prefix // prefixes with which an address of the result is compared
	answers  []Answer
}

// FilterForm describes the syntax of a filter, for messages.
const FilterForm = "conditions with spaces between, such as \"answer=syn-ack,reset ttl>64 rtt_ms<=10 address=10.0.0.0/8 port!=22\"; fields address, from, answer, port, code, ttl, rtt_ms; = and != take lists with commas"

// operators are the comparison operators. Longer operators precede their prefixes.
var operators = []string{"!=", "<=", ">=", "=", "<", ">"}

// ParseFilter parses conditions such as "answer=syn-ack ttl>64". Conditions are separated by spaces.
func ParseFilter(s string) (f Filter, err error) {
	for _, text := range strings.Fields(s) {
		t, err := parseTerm(text)
		if err != nil {
			return f, err
		}
		f.terms = append(f.terms, t)
		f.Answers = f.Answers || t.field == "answer"
	}
	if len(f.terms) == 0 {
		return f, fmt.Errorf("there is no condition; allowed: %s", FilterForm)
	}
	return f, nil
}

func parseTerm(text string) (t term, err error) {
	at := strings.IndexAny(text, "!<>=")
	if at < 0 {
		return t, fmt.Errorf("%q compares nothing; allowed: %s", text, FilterForm)
	}
	t.field = text[:at]
	for _, o := range operators {
		if strings.HasPrefix(text[at:], o) {
			t.operator = o
			break
		}
	}
	if t.operator == "" {
		return t, fmt.Errorf("%q compares nothing; allowed: %s", text, FilterForm)
	}
	ordered := t.operator != "=" && t.operator != "!="
	list := strings.Split(text[at+len(t.operator):], ",")
	if ordered && (len(list) > 1 || t.field == "address" || t.field == "from" || t.field == "answer") {
		return t, fmt.Errorf("%q: %s does not compare that; allowed: %s", text, t.operator, FilterForm)
	}
	for _, one := range list {
		if !t.add(one) {
			return t, fmt.Errorf("%q: %q is no value of a field %s; allowed: %s", text, one, t.field, FilterForm)
		}
	}
	return t, nil
}

// add parses a value of the condition's field and adds it to the condition. ok is false if the field or the value is
// invalid.
func (t *term) add(s string) (ok bool) {
	switch t.field {
	case "address", "from":
		p, err := netip.ParsePrefix(s)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(s); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		t.prefixes = append(t.prefixes, p)
		return err == nil
	case "answer":
		i := slices.Index(answerNames[:], s)
		t.answers = append(t.answers, Answer(max(i, 0)))
		return i >= 0
	case "port", "code", "ttl", "rtt_ms":
		n, err := strconv.ParseFloat(s, 64)
		t.numbers = append(t.numbers, n)
		return err == nil && n == n
	}
	return false
}

// Match reports whether a result fulfils all conditions. A condition on an unknown round-trip time is not fulfilled.
func (f *Filter) Match(r *Result) bool {
	for i := range f.terms {
		if !f.terms[i].match(r) {
			return false
		}
	}
	return true
}

func (t *term) match(r *Result) bool {
	switch t.field {
	case "address":
		return t.contains(r.Addr)
	case "from":
		return t.contains(r.From)
	case "answer":
		return slices.Contains(t.answers, r.Answer) == (t.operator == "=")
	case "port":
		return t.compare(float64(r.Port))
	case "code":
		return t.compare(float64(r.Code))
	case "ttl":
		return t.compare(float64(r.HopLimit))
	}
	return r.RTT >= 0 && t.compare(r.RTT.Seconds()*1000)
}

func (t *term) contains(a netip.Addr) bool {
	in := slices.ContainsFunc(t.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	return in == (t.operator == "=")
}

func (t *term) compare(n float64) bool {
	switch than := t.numbers[0]; t.operator {
	case "<":
		return n < than
	case "<=":
		return n <= than
	case ">":
		return n > than
	case ">=":
		return n >= than
	}
	return slices.Contains(t.numbers, n) == (t.operator == "=")
}
