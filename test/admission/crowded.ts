import { closeSync, openSync } from 'node:fs'
import { isAlive, ownHolder } from '../../src/admission/lock-holder.js'

/** Prints whether this thread counts as alive, and one that has ended, while no descriptor of the process is free. */
const own = ownHolder()
const ended = own - 1
isAlive(own)
const opened: number[] = []
try {
  for (;;) opened.push(openSync('/dev/null', 'r'))
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error
}
const crowded = isAlive(own)
for (const one of opened) closeSync(one)
process.stdout.write(JSON.stringify({ crowded, own: isAlive(own), ended: isAlive(ended) }))
