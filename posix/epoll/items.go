package epoll

import "iter"

// itemTable holds the items of a set. Event loops add and remove an item for each request, so items are found by the number of
// their descriptor, without a hash.
type itemTable struct {
	slots []*item // items by descriptor
	// others has the items that are not in slots: items with a large descriptor, and items of a closed descriptor whose number is
	// used again while its open file description exists.
	others map[itemKey]*item
}

// mostSlots bounds the size of slots.
const mostSlots = 4096

// find returns the item with a key, or nil.
func (t *itemTable) find(key itemKey) *item {
	if key.fd < len(t.slots) {
		if it := t.slots[key.fd]; it != nil && it.open == key.open {
			return it
		}
	}
	if len(t.others) == 0 {
		return nil
	}
	return t.others[key]
}

// add adds an item whose key is not in the table.
func (t *itemTable) add(it *item) {
	if it.fd < mostSlots {
		if missing := it.fd + 1 - len(t.slots); missing > 0 {
			t.slots = append(t.slots, make([]*item, missing)...)
		}
		if t.slots[it.fd] == nil {
			t.slots[it.fd] = it
			return
		}
	}
	if t.others == nil {
		t.others = make(map[itemKey]*item)
	}
	t.others[it.itemKey] = it
}

// remove removes an item, if it is in the table.
func (t *itemTable) remove(it *item) {
	switch {
	case it.fd < len(t.slots) && t.slots[it.fd] == it:
		t.slots[it.fd] = nil
	case t.others[it.itemKey] == it:
		delete(t.others, it.itemKey)
	}
}

// all returns all items.
func (t *itemTable) all() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for _, it := range t.slots {
			if it != nil && !yield(it) {
				return
			}
		}
		for _, it := range t.others {
			if !yield(it) {
				return
			}
		}
	}
}
