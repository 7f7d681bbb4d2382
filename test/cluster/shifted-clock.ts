/**
 * Given to Node by `--import`: the time of day of each thread of a program is off by the milliseconds that the file
 * TEST_CLOCK_FILE has, also when they change while it runs. Its timers go on as they do when a clock is set.
 */
import { readFileSync } from 'node:fs'
import { systemClock } from '../../src/actor/clock.js'

const path = process.env.TEST_CLOCK_FILE ?? ''
const everyMs = 250
let offMs = 0

function look(): void {
  offMs = Number(readFileSync(path, 'utf8'))
}

const Real = Date
class Shifted extends Real {
  constructor(...words: readonly unknown[]) {
    if (words.length === 0) super(Shifted.now())
    else super(...(words as [number]))
  }

  static override now(): number {
    return Real.now() + offMs
  }
}

look()
globalThis.Date = Shifted as DateConstructor
systemClock.every(everyMs, look)
