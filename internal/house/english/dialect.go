package english

import (
	"regexp"
	"strings"
)

// Finding is a phrase that readers stumble over.
type Finding struct {
	File   string
	Line   int
	Phrase string
	Reason string
}

// pattern is a family of phrases, with the advice that the author gets.
type pattern struct {
	match  *regexp.Regexp
	advice string
}

func words(expr string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + expr + `)\b`) }

// dialect lists the phrases. Each is rare in plain technical English and was frequent in this tree. A
// phrase with a common technical meaning is not in the list, even if it was overused.
var dialect = []pattern{
	{words(`tell|tells|told|telling|untold`), "write reports, notifies, returns, or passes"},
	{words(`hear|hears|heard|hearing`), "write receives or is notified"},
	{words(`(?:is|are|was|were) (?:what|who)`), "X is what ... is not a definition: write X is the ..."},
	{regexp.MustCompile(`(?:^|[.:;] |\n\n)(?:What|Who|Whoever|Whatever)\s[^.?]*?[.:;]`), "a clause stands for the subject: name the subject"},
	{words(`(?:to|by|for|of|with|from|at|in|on|than|as) (?:who|whoever)`), "a clause stands for a noun: name the sender, the caller, the owner"},
	{words(`(?:to|by|of) what (?:is|are|was|were|has|have|it|they|goes|comes|came|went|arrives|waits|others)`), "a clause stands for a noun: name the thing"},
	{words(`what (?:arrives|comes|came|goes|went|is there|there is|waits|is left|is due|is owed|is meant)`), "a clause stands for a noun: name the thing"},
	{words(`(?:that|those) of (?:a|an|the|its|it|this|their|one|each|every|another)`), "repeat the noun instead of pointing back with that or those"},
	{regexp.MustCompile(`(?i), of (?:which|whom)\b|\bof which (?:each|the|it|one|they|there|an?)\b`), "split the sentence"},
	{words(`(?:who|that|which) (?:is|are) (?:it|they) (?:who|that)`), "split the sentence"},
	{regexp.MustCompile(`\b(?:somebody|nobody|anybody|whoever|whomever)\b`), "name the actor: a thread, a process, the caller; or write no thread, no caller"},
	{words(`(?:to|can|could|may|must|not) be had`), "write is available"},
	{words(`(?:comes?|came|coming) to (?:know|rest|its|nothing|be|look|lie|stand)`), "use one verb: learns, ends, becomes, looks"},
	{words(`(?:go|goes|went|going) on`), "write continues"},
	{words(`(?:know|knows|knew) of`), "write knows, has a record of, or refers to"},
	{words(`ow(?:ed|es|e|ing)`), "write deferred or pending"},
	{words(`hurr(?:y|ies|ied)`), "write expedites or speeds up"},
	{words(`so (?:many|much)`), "name the quantity"},
	{words(`for want of`), "write for lack of, or because there is no"},
	{words(`otherwise than|else than`), "write differently from"},
	{words(`as ever|by and by|anew`), "write as usual, later, or again"},
	{words(`likewise`), "repeat the verb"},
	{words(`(?:stand|stands|stood|standing) (?:in|at|behind|beside|there|before|below|above|here|between|first|last|on|under|with)`), "write is in, precedes, or follows"},
	{words(`(?:lie|lies|lay|lying) (?:behind|beside|there|before|here|under)`), "write is in, or is stored at"},
	{words(`what \w+ (?:says?|said|has to say)`), "write reports, or name the message"},
	{words(`(?:says?|said) (?:it|them|this|that it|to)`), "write reports, states, or sends"},
	{words(`(?:is|are|be) (?:said|shown the way|asked of|asked again|meant for it)`), "use the field's verb"},
	{words(`(?:has|have|had) (?:it|them|him|her|somebody) (?:from|by|where|on|in|at|as|be|do|go|know|take|wait|look|make|pass|kept|done|made|open|grow|given)`), "write makes, lets, or causes"},
	{words(`beside (?:it|its|one|each|these|this|that|those|them)`), "write next to, in addition to, or compared with"},
}

// code matches the text in `backquotes`, which consists of names and examples.
var code = regexp.MustCompile("`[^`]*`")

// Dialect returns the phrases of p that are in the list, in the order of the list. Text in `backquotes` is
// not searched.
func Dialect(p Passage) []Finding {
	text := code.ReplaceAllStringFunc(strings.ReplaceAll(p.Text, "\n", " "), func(span string) string {
		return strings.Repeat("`", len(span))
	})
	var all []Finding
	for _, d := range dialect {
		for _, m := range d.match.FindAllStringIndex(text, -1) {
			line := p.Line + strings.Count(p.Text[:m[0]], "\n")
			all = append(all, Finding{p.File, line, strings.TrimSpace(text[m[0]:m[1]]), d.advice})
		}
	}
	return all
}
