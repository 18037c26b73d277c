package queue

import "testing"

func TestCharged(t *testing.T) {
	var q Charged[string]
	if _, _, ok := q.Take(); ok || q.Any() {
		t.Error("the zero value is not empty")
	}
	q.Put("a", 6, 10)
	q.Put("too large", 5, 10)
	q.Put("b", 4, 10)
	if x, next, ok := q.Take(); x != "a" || next == nil || *next != "b" || !ok || !q.Any() {
		t.Errorf("took %q, %v, %v", x, next, ok)
	}
	q.Put("c", 6, 10)
	if x, next, _ := q.Take(); x != "b" || next == nil || *next != "c" {
		t.Errorf("took %q, %v", x, next)
	}
	if x, next, _ := q.Take(); x != "c" || next != nil || q.Any() {
		t.Errorf("took %q, %v", x, next)
	}
	q.Put("d", 1, 10)
	if q.Clear(); q.Any() {
		t.Error("the cleared queue is not empty")
	}
	if q.Put("e", 10, 10); !q.Any() {
		t.Error("a cleared queue is charged")
	}
}
