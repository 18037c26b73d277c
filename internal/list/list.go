// Package list is a doubly linked list through nodes that are embedded in what
// they link, so that an element can be on several lists, move and leave in
// constant time, and cost no memory of its own. It is the order (least recently
// used first) behind every bounded table of the stack.
package list

// Node is an element's place on one list. The zero value is on none. It must not
// be copied while it is on one.
type Node[T any] struct {
	// Owner is what the node is embedded in; to be set before the first use.
	Owner *T

	prev, next *Node[T]
	on         *List[T]
}

// List is a list. The zero value is empty.
type List[T any] struct {
	head, tail *Node[T]
	len        int
}

// Len is the number of elements.
func (l *List[T]) Len() int { return l.len }

// Front is the first element, nil if there is none.
func (l *List[T]) Front() *T {
	if l.head == nil {
		return nil
	}
	return l.head.Owner
}

// PushBack puts n at the end of l; if n is on a list, it leaves that.
func (l *List[T]) PushBack(n *Node[T]) {
	if n.on == l && l.tail == n {
		return
	}
	n.Remove()
	n.prev, n.on = l.tail, l
	if l.tail != nil {
		l.tail.next = n
	} else {
		l.head = n
	}
	l.tail = n
	l.len++
}

// Remove takes n off the list that it is on, if any.
func (n *Node[T]) Remove() {
	l := n.on
	if l == nil {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.tail = n.prev
	}
	n.prev, n.next, n.on = nil, nil, nil
	l.len--
}

// Listed reports whether n is on a list.
func (n *Node[T]) Listed() bool { return n.on != nil }

// All calls yield for every element in order until it returns false. yield may
// remove the element that it is given.
func (l *List[T]) All(yield func(*T) bool) {
	for n := l.head; n != nil; {
		next := n.next
		if !yield(n.Owner) {
			return
		}
		n = next
	}
}
