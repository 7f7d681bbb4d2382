/**
 * One row of a configuration table: how the text of an environment variable becomes a value, what it is without one, and
 * why it exists. A reader returns either a value or the reason why the text is refused; nothing here reads the environment.
 */
export interface Setting<T> {
  readonly env: string
  readonly why: string
  /** Shown in listings: what may be written. */
  readonly allowed: string
  /** As it would be written, '' for none. */
  readonly defaultText: string
  readonly fallback: T
  /** Never shown or logged. */
  readonly secret: boolean
  /** A running program uses a new value after `sluice reload`; any other setting waits for the next start. */
  readonly reloadable: boolean
  read(text: string): Parsed<T>
  /** Words of other gateways in the text that have no effect here, each with the reason. */
  ignored?(text: string): readonly { readonly word: string; readonly why: string }[]
}

export type Parsed<T> = { readonly value: T } | { readonly wrong: string }

interface Words {
  readonly env: string
  readonly why: string
}

function row<T>(
  words: Words,
  allowed: string,
  defaultText: string,
  fallback: T,
  read: Setting<T>['read'],
): Setting<T> {
  const { env, why } = words
  return { env, why, allowed, defaultText, fallback, secret: false, reloadable: false, read }
}

/** A whole number within bounds; the unit belongs into the setting's name. */
export function whole(words: Words & { default: number; min: number; max: number }): Setting<number> {
  const allowed = `whole number, ${words.min} to ${words.max}`
  return row(words, allowed, String(words.default), words.default, (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    return value >= words.min && value <= words.max ? { value } : { wrong: `must be a ${allowed}` }
  })
}

/** A whole number that may be left out. */
export function maybeWhole(words: Words & { min: number; max: number }): Setting<number | undefined> {
  const inner = whole({ ...words, default: words.min })
  return { ...inner, defaultText: '', fallback: undefined, read: inner.read }
}

/** `true` or `false`, nothing else. */
export function flag(words: Words & { default: boolean }): Setting<boolean> {
  return row(words, 'true or false', String(words.default), words.default, (text) =>
    text === 'true' || text === 'false' ? { value: text === 'true' } : { wrong: 'must be true or false' },
  )
}

/** One of a few words. */
export function choice<const W extends string>(words: Words & { default: W; of: readonly W[] }): Setting<W> {
  const allowed = words.of.join(', ')
  return row(words, allowed, words.default, words.default, (text) => {
    const value = words.of.find((word) => word === text)
    return value === undefined ? { wrong: `must be one of: ${allowed}` } : { value }
  })
}

/** Free text that may be left out. */
export function maybeText(words: Words & { shape?: RegExp; allowed: string }): Setting<string | undefined> {
  return row<string | undefined>(words, words.allowed, '', undefined, (text) =>
    (words.shape ?? /./).test(text) ? { value: text } : { wrong: `must be ${words.allowed}` },
  )
}

/** Free text with a default. */
export function text(words: Words & { default: string; shape?: RegExp; allowed: string }): Setting<string> {
  return row(words, words.allowed, words.default, words.default, (given) =>
    (words.shape ?? /./).test(given) ? { value: given } : { wrong: `must be ${words.allowed}` },
  )
}

/** Comma-separated words, each of a shape; an empty text is an empty list. */
export function list(
  words: Words & { default: readonly string[]; shape?: RegExp; allowed: string },
): Setting<readonly string[]> {
  return row<readonly string[]>(words, words.allowed, words.default.join(','), words.default, (given) => {
    const value = given.split(',').map((part) => part.trim())
    const bad = value.filter((part) => !(words.shape ?? /^\S+$/).test(part))
    return bad.length === 0
      ? { value }
      : { wrong: `has entries that are not ${words.allowed}: ${bad.join(' ')}` }
  })
}

/**
 * As `list`, for words that other gateways of the network have too: theirs that mean nothing here (`foreign`, each with the
 * reason) are left out, and the start says so.
 */
export function sharedList(
  words: Words & {
    default: readonly string[]
    shape: RegExp
    allowed: string
    foreign: ReadonlyMap<string, string>
    /** Whether a list of nothing else is an empty one; else it is refused: it asks for nothing that is here. */
    mayBeEmpty: boolean
  },
): Setting<readonly string[]> {
  const { foreign } = words
  const given = (text: string): string[] => text.split(',').map((part) => part.trim())
  const own = list(words)
  return {
    ...own,
    read: (text) => {
      const known = given(text).filter((word) => !foreign.has(word))
      if (known.length > 0) return own.read(known.join(','))
      return words.mayBeEmpty ? { value: [] } : { wrong: `names nothing that is here: ${words.allowed}` }
    },
    ignored: (text) => {
      return given(text).flatMap((word) => {
        const why = foreign.get(word)
        return why === undefined ? [] : [{ word, why }]
      })
    },
  }
}

/** An http(s) address without a trailing slash, user, query or fragment. */
export function readUrl(given: string): Parsed<string> {
  const read = readWholeUrl(given)
  if ('wrong' in read) return read
  if (new URL(read.value).search !== '') return { wrong: 'must not hold a query' }
  return { value: read.value.replace(/\/$/, '') }
}

/** An http(s) address as it is requested, its query too; without user or fragment. */
export function readWholeUrl(given: string): Parsed<string> {
  if (!URL.canParse(given)) return { wrong: `is not an address: ${given}` }
  const url = new URL(given)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return { wrong: 'must begin with http:// or https://' }
  if (url.username !== '' || url.hash !== '') return { wrong: 'must not hold a user or a fragment' }
  return { value: url.href }
}

/** Where a Redis is. */
export function readRedis(given: string): Parsed<string> {
  const text = given.includes('://') ? given : `redis://${given}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isRedis = url?.protocol === 'redis:' || url?.protocol === 'rediss:'
  return url !== undefined && isRedis && url.hostname !== ''
    ? { value: text }
    : { wrong: 'must be host:port or a redis:// or rediss:// address' }
}

/** Comma-separated http(s) addresses, each read by `readOne`; undefined where the setting is absent. */
export function maybeUrls(
  words: Words,
  readOne: typeof readUrl = readUrl,
): Setting<readonly string[] | undefined> {
  return row<readonly string[] | undefined>(
    words,
    'http(s) addresses, comma between',
    '',
    undefined,
    (given) => {
      const read = given.split(',').map((part) => readOne(part.trim()))
      const wrong = read.flatMap((one) => ('wrong' in one ? [one.wrong] : []))
      if (wrong.length > 0) return { wrong: wrong.join('; ') }
      return { value: read.flatMap((one) => ('value' in one ? [one.value] : [])) }
    },
  )
}

/** A setting with a reader of its own. */
export function custom<T>(
  words: Words & { allowed: string; defaultText: string; default: T; read: Setting<T>['read'] },
): Setting<T> {
  return row(words, words.allowed, words.defaultText, words.default, words.read)
}

/** The same setting, of which a running program can use a new value: `src/main/reload.ts` tells the threads that read it. */
export function reloadable<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, reloadable: true }
}

/** The same setting, its value never shown or logged. */
export function secret<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, secret: true }
}
