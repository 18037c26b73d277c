package neigh

// list is a doubly linked list through neighbours, each of which can be on one
// list of each kind: the head is the oldest.
type list struct {
	kind       linkKind
	head, tail *neighbour
}

type linkKind uint8

const (
	byRank linkKind = iota // one of Cache.ranks: for eviction
	byTurn                 // Cache.due: to be solicited
	linkKinds
)

type link struct{ prev, next *neighbour }

func (l *list) pushBack(n *neighbour) {
	n.link[l.kind] = link{prev: l.tail}
	if l.tail != nil {
		l.tail.link[l.kind].next = n
	} else {
		l.head = n
	}
	l.tail = n
}

// remove takes n, which is on the list, off it.
func (l *list) remove(n *neighbour) {
	at := n.link[l.kind]
	if at.prev != nil {
		at.prev.link[l.kind].next = at.next
	} else {
		l.head = at.next
	}
	if at.next != nil {
		at.next.link[l.kind].prev = at.prev
	} else {
		l.tail = at.prev
	}
	n.link[l.kind] = link{}
}

func (l *list) moveToBack(n *neighbour) {
	if l.tail != n {
		l.remove(n)
		l.pushBack(n)
	}
}
