import { hashOfName, headMaxBytes, lineFields, linesMax, requestFlag } from './wire.js'

/** What is wrong with a request, and its status. */
export interface HeadFault {
  readonly status: 400 | 408 | 431 | 505
  readonly word: string
}

/** Neither `consumed` nor `fault`: more bytes are needed. */
export interface ParsedHead {
  readonly consumed: number
  readonly fault?: HeadFault
}

function bad(word: string, status: HeadFault['status'] = 400): { consumed: 0; fault: HeadFault } {
  return { consumed: 0, fault: { status, word } }
}

const more: ParsedHead = { consumed: 0 }
/** RFC 6585 section 5. */
const tooLarge = bad('the head is too large', 431)
export const lateFault: HeadFault = { status: 408, word: 'the request did not arrive in time' }
export const chunkFault: HeadFault = { status: 400, word: 'a malformed chunk' }
const noLine = bad('the first line does not end with a version')
const noMethod = bad('the method has characters that no method has')
const noTarget = bad('the target is no path and no address, or has characters that must be escaped')
const noValue = bad('a header line has characters that it must not have')
const noName = bad('a header line has no sound name')
const noLength = bad('a Content-Length that is no number')
const wrongCoding = bad('a Transfer-Encoding other than one chunked')
const otherVersion: ParsedHead = bad('only HTTP/1.1 and HTTP/1.0 are spoken here', 505)

const methodEnd = /[^A-Z]/g
const targetEnd = /[^\x21\x22\x24-\x7e]/g
const hostEnd = /[^A-Za-z0-9._~%!$&'()*+,;=:[\]-]/g
const nameEnd = /[^A-Za-z0-9!#$%&'*+\-.^_`|~]/g
const valueEnd = /[^\t\x20-\x7e\x80-\xff]/g
const hostShape = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]*$/
const versionShape = 'HTTP/0.0\r\n'

/** Where the characters of a part end, at or behind `from`. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

function hasWord(list: string, word: string): boolean {
  return list.split(/[, \t]/).some((each) => each.toLowerCase() === word)
}

/**
 * The strict reader of heads, as parser.h has it: the same bytes give the same numbers (`field` without kind, slot and base)
 * and the same faults. Kept simple rather than fast.
 */
export function readHead(text: string, out: number[]): ParsedHead {
  const reader = new HeadReader(text)
  const parsed = reader.read()
  if (parsed.fault !== undefined) return parsed
  if (parsed.consumed > headMaxBytes || (parsed.consumed === 0 && text.length >= headMaxBytes))
    return tooLarge
  out.push(...reader.numbers())
  return parsed
}

class HeadReader {
  #at = 0
  #method: [start: number, end: number] = [0, 0]
  #target = [0, 0, 0, 0]
  #authority: readonly [start: number, end: number] | undefined
  #flags = 0
  #length = 0
  readonly #lines: number[] = []
  #host: string | undefined
  #hostLine = 0
  #size: string | undefined
  #coding: string | undefined
  #close = false

  constructor(private readonly text: string) {}

  numbers(): number[] {
    const high = Math.floor(this.#length / 2 ** 30)
    const low = this.#length % 2 ** 30
    const count = this.#lines.length / lineFields
    return [this.#flags, 0, ...this.#method, ...this.#target, this.#at, high, low, count, ...this.#lines]
  }

  read(): ParsedHead {
    const { text } = this
    // One empty line in front is forgiven (RFC 9112 section 2.2).
    if (text.startsWith('\r')) {
      if (text.length > 1 && text[1] !== '\n') return noMethod
      this.#at = 2
    }
    return this.#firstLine() ?? this.#headerLines() ?? this.#framing() ?? { consumed: this.#at }
  }

  #firstLine(): ParsedHead | undefined {
    const { text } = this
    const start = this.#at
    if (start >= text.length) return more
    const end = endOf(methodEnd, text, start)
    if (end - start > 20) return noMethod
    if (end === text.length) return more
    if (end === start || text[end] !== ' ') return noMethod
    this.#method = [start, end]
    this.#at = end + 1
    return this.#path() ?? this.#version()
  }

  #path(): ParsedHead | undefined {
    const { text } = this
    if (this.#at === text.length) return more
    if (text[this.#at] === '*' && text.slice(...this.#method) === 'OPTIONS') return this.#wholeServer()
    const ended = text[this.#at] === '/' ? undefined : this.#named()
    if (ended !== undefined) return ended
    const start = this.#at
    const over = endOf(targetEnd, text, start)
    if (over === text.length) return more
    if (text[over] !== ' ') return noTarget
    const found = text.indexOf('?', start)
    const isFound = found !== -1 && found < over
    const end = isFound ? found : over
    // No path is the path "/": the last slash of the scheme stands for it.
    const slash = this.#authority?.[0] ?? 0
    const path = start === end ? [slash - 1, slash] : [start, end]
    this.#target = [...path, isFound ? found + 1 : over, over]
    this.#at = over + 1
    return undefined
  }

  /**
   * The asterisk form (RFC 9112 section 3.2.4) asks about the server and no resource of it. It is answered like the path "/", for
   * which the slash of the version stands.
   */
  #wholeServer(): ParsedHead | undefined {
    const start = this.#at
    if (start + 1 >= this.text.length) return more
    if (this.text[start + 1] !== ' ') return noTarget
    this.#target = [start + 6, start + 7, start + 1, start + 1]
    this.#at = start + 2
    return undefined
  }

  /** The absolute form (RFC 9112 section 3.2.2): a scheme, and a host that takes the place of the Host line. */
  #named(): ParsedHead | undefined {
    const { text } = this
    for (const wanted of 'https://') {
      if (this.#at === text.length) return more
      if (text[this.#at]?.toLowerCase() === wanted) this.#at += 1
      else if (wanted !== 's') return noTarget
    }
    const start = this.#at
    const end = endOf(hostEnd, text, start)
    if (end === text.length) return more
    if (end === start || text[start] === ':' || !'/? '.includes(text[end] ?? '')) return noTarget
    this.#authority = [start, end]
    this.#at = end
    return undefined
  }

  #version(): ParsedHead | undefined {
    const found = this.text.slice(this.#at, this.#at + versionShape.length)
    for (let index = 0; index < found.length; index += 1) {
      const wanted = versionShape[index]
      const digit = wanted === '0' && /[0-9]/.test(found[index] ?? '')
      if (!digit && found[index] !== wanted) return noLine
    }
    if (found.length < versionShape.length) return more
    if (found[5] !== '1' || (found[7] !== '0' && found[7] !== '1')) return otherVersion
    if (found[7] === '0') this.#flags |= requestFlag.http10
    this.#at += versionShape.length
    return undefined
  }

  #headerLines(): ParsedHead | undefined {
    const { text } = this
    for (;;) {
      if (this.#at >= text.length) return more
      if (text[this.#at] === '\r') {
        if (this.#at + 1 >= text.length) return more
        if (text[this.#at + 1] !== '\n') return noValue
        this.#at += 2
        return undefined
      }
      const ended = this.#headerLine()
      if (ended !== undefined) return ended
    }
  }

  #headerLine(): ParsedHead | undefined {
    const { text } = this
    const start = this.#at
    if (text[start] === ' ' || text[start] === '\t') return bad('a header line is folded')
    const colon = endOf(nameEnd, text, start)
    if (colon === text.length) return more
    if (colon === start || text[colon] !== ':') return noName
    const end = endOf(valueEnd, text, colon + 1)
    if (end === text.length) return more
    if (text[end] !== '\r') return noValue
    if (end + 1 >= text.length) return more
    if (text[end + 1] !== '\n') return noValue
    let from = colon + 1
    let to = end
    while (from < end && (text[from] === ' ' || text[from] === '\t')) from += 1
    while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to -= 1
    this.#at = end + 2
    if (this.#lines.length === linesMax * lineFields) return bad('too many header lines', 431)
    const name = text.slice(start, colon).toLowerCase()
    this.#lines.push(hashOfName(name), start, colon, from, to)
    return this.#known(name, text.slice(from, to))
  }

  /** Lines that say how the connection goes on. */
  #known(name: string, value: string): ParsedHead | undefined {
    switch (name) {
      case 'host':
        if (this.#host !== undefined) return bad('two Host lines')
        this.#host = value
        this.#hostLine = this.#lines.length - lineFields
        break
      case 'content-length':
        if (this.#size !== undefined) return bad('two Content-Length lines')
        this.#size = value
        break
      case 'transfer-encoding':
        if (this.#coding !== undefined) return wrongCoding
        this.#coding = value
        break
      case 'connection':
        this.#close ||= hasWord(value, 'close')
        break
      case 'expect':
        if (hasWord(value, '100-continue')) this.#flags |= requestFlag.expects
        break
    }
    return undefined
  }

  #framing(): ParsedHead | undefined {
    const old = (this.#flags & requestFlag.http10) !== 0
    if (!old && !this.#close) this.#flags |= requestFlag.keep
    if (this.#host === undefined && (!old || this.#authority !== undefined)) return bad('no Host line')
    if (!hostShape.test(this.#host ?? '')) return bad('the Host line names no host')
    if (this.#authority !== undefined) this.#lines.splice(this.#hostLine + 3, 2, ...this.#authority)
    if (this.#size !== undefined && this.#coding !== undefined) {
      return bad('both Content-Length and Transfer-Encoding')
    }
    if (this.#coding !== undefined) {
      // Names of codings have no letter case (RFC 9112 section 7). Of ASCII alone: the Kelvin sign is no k.
      if (!/^[A-Za-z]+$/.test(this.#coding) || this.#coding.toLowerCase() !== 'chunked') return wrongCoding
      const method = this.text.slice(this.#method[0], this.#method[1])
      if (old || method === 'GET' || method === 'HEAD') return bad('chunks where none can be')
      this.#flags |= requestFlag.body | requestFlag.chunked
    }
    if (this.#size === undefined) return undefined
    // Up to 15 digits stay exact in a double.
    if (!/^[0-9]{1,15}$/.test(this.#size)) return noLength
    this.#length = Number(this.#size)
    if (this.#length > 0) this.#flags |= requestFlag.body
    return undefined
  }
}
