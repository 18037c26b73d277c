package pressure

import "testing"

func TestDecide(t *testing.T) {
	processes := []Process{{ID: 1, Pages: 900, Init: true}, {ID: 7, Pages: 300}, {ID: 9, Pages: 400, Adjust: -1000}, {ID: 8, Pages: 100, Adjust: 500}}
	for _, test := range []struct {
		name      string
		memory    Memory
		request   Request
		processes []Process
		want      Decision
	}{
		{"pages are free", Memory{Total: 1000, Free: 20, Reserve: 10}, Request{Pages: 10}, nil, Decision{Action: Grant}},
		{"the reserve is the kernel's", Memory{Total: 1000, Free: 10, Reserve: 10}, Request{Pages: 10, Kernel: true}, nil, Decision{Action: Grant}},
		{"clean pages go first", Memory{Total: 1000, Free: 10, Reserve: 10, Clean: 500, Dirty: 9}, Request{Pages: 1}, processes, Decision{Action: Evict, Pages: 256}},
		{"no more than there are", Memory{Total: 1000, Clean: 5}, Request{Pages: 9}, processes, Decision{Action: Evict, Pages: 5}},
		{"then dirty ones", Memory{Total: 1000, Dirty: 900}, Request{Pages: 300}, processes, Decision{Action: WriteBack, Pages: 300}},
		{"a call is refused", Memory{Total: 1000}, Request{Pages: 1, MayFail: true}, processes, Decision{Action: Refuse}},
		{"a fault kills by adjusted size", Memory{Total: 1000}, Request{Pages: 1}, processes, Decision{Action: Kill, Process: 8}},
		{"of equals the youngest", Memory{Total: 1000}, Request{Pages: 1}, []Process{{ID: 3, Pages: 5}, {ID: 4, Pages: 5}}, Decision{Action: Kill, Process: 4}},
		{"one at a time", Memory{Total: 1000}, Request{Pages: 1}, []Process{{ID: 3, Pages: 5}, {ID: 4, Dying: true}}, Decision{Action: Wait}},
		{"nobody may be killed", Memory{Total: 1000}, Request{Pages: 1}, processes[:1], Decision{Action: Refuse}},
	} {
		if got := Decide(test.memory, test.request, test.processes); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
