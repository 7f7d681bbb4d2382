import type { Clock } from '../actor/clock.js'
import { paint } from './paint.js'

/** Milliseconds between updates of a terminal, and between lines in a file. */
const drawMs = { terminal: 100, file: 10_000 }
const barWidth = 30

/**
 * Progress on standard error: amount done, total, rate, time left. On a terminal one line that is redrawn; elsewhere a plain
 * line from time to time.
 */
export class Progress {
  readonly #startedMs: number
  #drawnMs: number
  #extra = ''

  constructor(
    private readonly what: string,
    private readonly clock: Clock,
    private readonly out: NodeJS.WriteStream = process.stderr,
  ) {
    this.#startedMs = clock.monotonic()
    this.#drawnMs = this.#startedMs
  }

  /** Shows `done` of `of` (0: total not known), followed by `extra`. */
  show(done: number, of: number, extra = this.#extra): void {
    this.#extra = extra
    const now = this.clock.monotonic()
    if (now - this.#drawnMs < (this.out.isTTY ? drawMs.terminal : drawMs.file)) return
    this.#drawnMs = now
    this.out.write(this.out.isTTY ? `\r\x1b[2K${this.#line(done, of)}` : `${this.#line(done, of)}\n`)
  }

  /** The last line stays. */
  end(done: number, of: number): void {
    this.out.write(this.out.isTTY ? `\r\x1b[2K${this.#line(done, of)}\n` : `${this.#line(done, of)}\n`)
  }

  #line(done: number, of: number): string {
    const seconds = Math.max((this.clock.monotonic() - this.#startedMs) / 1000, 0.001)
    const rate = done / seconds
    const share = of > 0 ? Math.min(done / of, 1) : 0
    const filled = Math.round(share * barWidth)
    const bar = `${paint('cyan', '━'.repeat(filled), this.out)}${paint('dim', '━'.repeat(barWidth - filled), this.out)}`
    const left = of > 0 && rate > 0 && done < of ? `, ${timeText((of - done) / rate)} left` : ''
    const counted = of > 0 ? `${grouped(done)} of ${grouped(of)}` : grouped(done)
    const head = this.out.isTTY && of > 0 ? `${bar} ` : ''
    return `${head}${this.what} ${counted}, ${grouped(Math.round(rate))}/s${left}${this.#extra === '' ? '' : `, ${this.#extra}`}`
  }
}

/** A number with its thousands apart. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** Seconds for people: `50 s`, `3 min 20 s`, `2 h 5 min`. */
export function timeText(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

/** While `work` runs: one line on a terminal that says what is waited for and for how long; nothing elsewhere. */
export async function whileWaiting<Result>(
  what: string,
  work: Promise<Result>,
  clock: Clock,
  out: NodeJS.WriteStream = process.stderr,
): Promise<Result> {
  if (!out.isTTY) return work
  const startedMs = clock.monotonic()
  const draw = (): void => {
    out.write(`\r\x1b[2K${what}, ${timeText((clock.monotonic() - startedMs) / 1000)}`)
  }
  draw()
  const timer = clock.every(250, draw)
  try {
    return await work
  } finally {
    timer.cancel()
    out.write('\r\x1b[2K')
  }
}
