package task

type filter struct{}

func (t *Task) inherit(o *Task) { t.filters = o.filters }

func (t *Task) filterCall(number uint64) (uint64, bool) { return number, true }
