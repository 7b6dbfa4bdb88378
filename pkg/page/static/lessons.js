// Lessons stand beside the drawing. A lesson is {title, draw}: the title is
// {en, zh}, and draw(page) returns an element, drawn anew when the language
// changes: what was subscribed to before is ended then. The tab is there as soon
// as there is one. Texts are in text.js.
//
// page is:
//   subscribe(listener)  calls back with {type, summary, isNew} for each trace;
//                        returns what ends that
//   summaries()          those there are, the oldest first
//   trace(name)          a promise of a whole trace, or of null
//   open(name, stage)    shows a trace, and a stage of it if one is named: as in
//                        v1alpha1, or PASS.STAGE for one of a pass, from 1
//   write(text, verb)    puts a Network into the editor, to be sent as create,
//                        update or apply

export const lessons = [];
