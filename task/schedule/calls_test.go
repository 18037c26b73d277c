package schedule

import "testing"

// PR_SET_TIMERSLACK with 0 restores the slack that the creator of the thread had (PR_SET_TIMERSLACK(2const)).
func TestSlack(t *testing.T) {
	parent := Traits{Slack: DefaultSlack}
	parent.SetSlack(70000)
	child := parent.Inherited()
	child.SetSlack(80000)
	child.SetSlack(0)
	if child.Slack != 70000 {
		t.Errorf("the child's slack is %d, want 70000", child.Slack)
	}
	parent.SetSlack(0)
	if parent.Slack != DefaultSlack {
		t.Errorf("the parent's slack is %d, want %d", parent.Slack, DefaultSlack)
	}
}
