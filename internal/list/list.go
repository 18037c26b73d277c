// Package list is a doubly linked list whose nodes are embedded in its elements. An element can be on
// several lists, can be moved and removed in constant time, and needs no extra memory. Every bounded
// table of the stack uses it to order its elements, least recently used first.
package list

// Node links an element into one list. An element has a Node for each list that it can be on. The zero value is on no
// list. A node must not be copied while it is on a list.
type Node[T any] struct {
	// Owner is the element that embeds the node. It must be set before the first use.
	Owner *T

	prev, next *Node[T]
	on         *List[T]
}

// List is a doubly linked list. The zero value is empty.
type List[T any] struct {
	head, tail *Node[T]
	len        int
}

// Len returns the number of elements.
func (l *List[T]) Len() int { return l.len }

// Front returns the first element, or nil if the list is empty.
func (l *List[T]) Front() *T {
	if l.head == nil {
		return nil
	}
	return l.head.Owner
}

// PushBack moves n to the end of l. If n is on another list, it is removed from it.
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

// Remove removes n from its list, if it is on one.
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

// All calls the function yield for every element in order, until yield returns false. The
// function may remove the element passed to it.
func (l *List[T]) All(yield func(*T) bool) {
	for n := l.head; n != nil; {
		next := n.next
		if !yield(n.Owner) {
			return
		}
		n = next
	}
}
