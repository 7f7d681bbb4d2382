import t from 'tap'
import { type Conditions, plan, type Representation } from '../../src/gateway/plan.js'
import { fc } from '../property.js'

const tag = '"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"'
const boundary = `${'-'.repeat(26)}0123456789abcdef01234567`

function known(sizeBytes: number, entityTag: string | undefined = tag): Representation {
  return { sizeBytes, contentType: 'text/plain', entityTag, boundary: () => boundary }
}

function conditions(wish: Partial<Conditions> = {}): Conditions {
  const none = { range: undefined, ifRange: undefined, ifMatch: undefined, ifNoneMatch: undefined }
  return { method: 'GET', ...none, ...wish }
}

/** Windows of the content that a plan sends. */
function windows(wish: Partial<Conditions>, sizeBytes = 100): [number, number][] {
  const decided = plan(conditions(wish), known(sizeBytes))
  if (decided.variant === 'refused') throw new Error(`refused with ${decided.status}`)
  return decided.pieces.flatMap((piece): [number, number][] =>
    'start' in piece ? [[piece.start, piece.end]] : [],
  )
}

t.test('single ranges', async (t) => {
  const table: [string, number, [number, number][] | number][] = [
    ['bytes=0-0', 206, [[0, 1]]],
    ['bytes=0-99', 206, [[0, 100]]],
    ['bytes=10-', 206, [[10, 100]]],
    ['bytes=99-', 206, [[99, 100]]],
    ['bytes=-1', 206, [[99, 100]]],
    ['bytes=-500', 206, [[0, 100]]],
    ['bytes=50-5000', 206, [[50, 100]]],
    ['BYTES=5-6', 206, [[5, 7]]],
    ['bytes =5-6', 200, [[0, 100]]],
    ['bytes= 5-6 ', 206, [[5, 7]]],
    ['bytes=5-6,', 206, [[5, 7]]],
    [`bytes=0-${'9'.repeat(400)}`, 206, [[0, 100]]],
    ['items=0-5', 200, [[0, 100]]],
    ['bytes=100-', 416, 416],
    ['bytes=5-2', 416, 416],
    ['bytes=-0', 416, 416],
    [`bytes=${'9'.repeat(400)}-`, 416, 416],
    ['bytes', 400, 400],
    ['bytes=', 416, 416],
    ['bytes=,', 416, 416],
    ['bytes=-', 416, 416],
    ['bytes=a-b', 416, 416],
    ['bytes=1', 416, 416],
    ['bytes=1 - 2', 416, 416],
    ['bytes=+1-2', 416, 416],
    ['bytes=1-2-3', 416, 416],
    ['bytes=0x1-2', 416, 416],
    ['bytes=1-2;3-4', 416, 416],
  ]
  for (const [range, status, expected] of table) {
    t.equal(plan(conditions({ range }), known(100)).status, status, range)
    if (typeof expected !== 'number') t.same(windows({ range }), expected, range)
  }
  t.match(plan(conditions({ range: 'bytes=200-' }), known(100)), {
    lines: '\r\nContent-Range: bytes */100',
    text: 'Range not satisfiable',
  })
  t.match(plan(conditions({ range: 'bytes=3-4' }), known(100)), {
    variant: 'part',
    lines: '\r\nContent-Range: bytes 3-4/100',
    contentLength: 2,
    bytes: 2,
  })
})

t.test('several ranges keep their order, each with its Content-Range', async (t) => {
  const decided = plan(conditions({ range: 'bytes=90-, 0-1 , 5-9' }), known(100))
  if (decided.variant !== 'parts') throw new Error(`planned as ${decided.variant}`)
  const body = decided.pieces
    .map((piece) =>
      'bytes' in piece ? Buffer.from(piece.bytes).toString() : `[${piece.start},${piece.end})`,
    )
    .join('')
  const frame = (window: string): string =>
    `--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes ${window}/100\r\n\r\n`
  t.equal(
    body,
    `${frame('90-99')}[90,100)\r\n${frame('0-1')}[0,2)\r\n${frame('5-9')}[5,10)\r\n--${boundary}--\r\n`,
  )
  const [ten, two, five] = ['[90,100)', '[0,2)', '[5,10)']
  t.equal(decided.contentLength, body.length - `${ten}${two}${five}`.length + 17)
})

t.test(
  'unsatisfiable ranges are left out of a list; too many ranges are answered with the whole',
  async (t) => {
    t.match(plan(conditions({ range: 'bytes=500-,0-1' }), known(100)), {
      status: 206,
      variant: 'part',
      bytes: 2,
    })
    t.equal(plan(conditions({ range: 'bytes=500-,600-' }), known(100)).status, 416)
    t.equal(
      plan(conditions({ range: 'bytes=0-60,30-90' }), known(100)).status,
      200,
      'longer than the content together',
    )
    t.equal(plan(conditions({ range: 'bytes=0-40,30-50' }), known(100)).status, 206)
    const many = Array.from({ length: 65 }, (_, index) => `${index}-${index}`)
    t.equal(plan(conditions({ range: `bytes=${many.join(',')}` }), known(100)).status, 200)
    t.equal(plan(conditions({ range: `bytes=${many.slice(1).join(',')}` }), known(100)).status, 206)
  },
)

t.test('empty content is answered whole, and every range of it is unsatisfiable', async (t) => {
  t.match(plan(conditions(), known(0)), { status: 200, contentLength: 0, bytes: 0, pieces: [] })
  for (const range of ['bytes=0-', 'bytes=-5', 'bytes=0-0']) {
    t.match(plan(conditions({ range }), known(0)), { status: 416, lines: '\r\nContent-Range: bytes */0' })
  }
})

const other = '"other"'
t.test('conditions, in their order of precedence', async (t) => {
  const table: [string, Partial<Conditions>, string | undefined, number][] = [
    ['the tag', { ifNoneMatch: tag }, tag, 304],
    ['another tag', { ifNoneMatch: other }, tag, 200],
    ['weak', { ifNoneMatch: `W/${tag}` }, tag, 304],
    ['in a list', { ifNoneMatch: `${other}, W/"x" ,${tag}` }, tag, 304],
    ['with a comma inside', { ifNoneMatch: `"a,b",${tag}` }, tag, 304],
    ['star', { ifNoneMatch: ' * ' }, tag, 304],
    ['star without a tag', { ifNoneMatch: '*' }, undefined, 304],
    ['a list without a tag', { ifNoneMatch: tag }, undefined, 200],
    ['without quotes', { ifNoneMatch: tag.slice(1, -1) }, tag, 200],
    ['empty', { ifNoneMatch: '' }, tag, 200],
    ['If-Match the tag', { ifMatch: tag }, tag, 200],
    ['If-Match star', { ifMatch: '*' }, undefined, 200],
    ['If-Match another', { ifMatch: other }, tag, 412],
    ['If-Match weak', { ifMatch: `W/${tag}` }, tag, 412],
    ['If-Match unknown tag', { ifMatch: tag }, undefined, 412],
    ['If-Match fails before If-None-Match', { ifMatch: other, ifNoneMatch: tag }, tag, 412],
    ['If-None-Match before Range', { ifNoneMatch: tag, range: 'bytes=0-1' }, tag, 304],
    ['If-None-Match before a bad Range', { ifNoneMatch: tag, range: 'bytes=900-' }, tag, 304],
    ['If-Match before a bad Range', { ifMatch: other, range: 'nonsense' }, tag, 412],
    ['If-Range the tag', { ifRange: tag, range: 'bytes=0-1' }, tag, 206],
    ['If-Range another', { ifRange: other, range: 'bytes=0-1' }, tag, 200],
    ['If-Range weak', { ifRange: `W/${tag}`, range: 'bytes=0-1' }, tag, 200],
    ['If-Range a date', { ifRange: 'Sat, 29 Oct 1994 19:43:31 GMT', range: 'bytes=0-1' }, tag, 200],
    ['If-Range unknown tag', { ifRange: tag, range: 'bytes=0-1' }, undefined, 200],
    ['If-Range another hides a bad Range', { ifRange: other, range: 'bytes=900-' }, tag, 200],
    ['If-Range without Range', { ifRange: other }, tag, 200],
  ]
  for (const [name, wish, entityTag, status] of table) {
    for (const method of ['GET', 'HEAD']) {
      const facts: Representation = { ...known(100), entityTag }
      t.equal(plan(conditions({ ...wish, method }), facts).status, status, `${method} ${name}`)
    }
  }
})

t.test('HEAD has the length that GET would have, and no bytes', async (t) => {
  for (const range of [undefined, 'bytes=1-5', 'bytes=1-5,7-9']) {
    const get = plan(conditions({ range }), known(100))
    const head = plan(conditions({ range, method: 'HEAD' }), known(100))
    if (get.variant === 'refused' || head.variant === 'refused') throw new Error('refused')
    t.same(head, { ...get, pieces: [], bytes: 0 })
    t.ok((head.contentLength ?? 0) > 0)
  }
})

/** A range as text, and what a simple reading of RFC 9110 makes of it. */
const rangeText = fc.oneof(
  fc.tuple(fc.nat(300), fc.nat(300)).map(([one, other]) => `${one}-${other}`),
  fc.nat(300).map((first) => `${first}-`),
  fc.nat(300).map((last) => `-${last}`),
)

t.test(
  'whatever is asked, what is sent lies inside, is as long as it says, and is what was asked for',
  async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(fc.array(rangeText, { minLength: 1, maxLength: 80 }), fc.nat(250), (texts, sizeBytes) => {
          const decided = plan(conditions({ range: `bytes=${texts.join(',')}` }), known(sizeBytes))
          if (decided.variant === 'refused')
            return (
              decided.status === 416 &&
              (texts.some(isBackwards) || texts.every((text) => isOutside(text, sizeBytes)))
            )
          let total = 0
          for (const piece of decided.pieces) {
            if ('bytes' in piece) total += piece.bytes.length
            else if (piece.start < 0 || piece.start >= piece.end || piece.end > sizeBytes) return false
            else total += piece.end - piece.start
          }
          if (total !== decided.contentLength || total !== decided.bytes) return false
          const content = decided.pieces.filter((piece) => 'start' in piece)
          if (decided.status === 200)
            return content.every(({ start, end }) => start === 0 && end === sizeBytes)
          const inside = texts.filter((text) => !isOutside(text, sizeBytes))
          return (
            content.length === inside.length &&
            content.every((window, index) => agrees(inside[index] ?? '', window, sizeBytes))
          )
        }),
        { numRuns: 2000 },
      ),
    )
  },
)

function isBackwards(text: string): boolean {
  const [, first = '', last = ''] = /^(\d+)-(\d+)$/.exec(text) ?? []
  return first !== '' && Number(last) < Number(first)
}

function isOutside(text: string, sizeBytes: number): boolean {
  const [, first = '', last = ''] = /^(\d*)-(\d*)$/.exec(text) ?? []
  if (first === '') return sizeBytes === 0 || Number(last) === 0
  return Number(first) >= sizeBytes
}

function agrees(text: string, window: { start: number; end: number }, sizeBytes: number): boolean {
  const [, first = '', last = ''] = /^(\d*)-(\d*)$/.exec(text) ?? []
  if (first === '')
    return window.end === sizeBytes && window.end - window.start === Math.min(Number(last), sizeBytes)
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  return window.start === Number(first) && window.end === end
}

t.test('planning throws for no header, however malformed', async (t) => {
  const mad = fc.option(
    fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.string({ maxLength: 60 }).map((text) => `bytes=${text}`),
    ),
    {
      nil: undefined,
    },
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.record({ range: mad, ifRange: mad, ifMatch: mad, ifNoneMatch: mad }),
        fc.nat(50),
        (wish, sizeBytes) => {
          const { status } = plan(conditions(wish), known(sizeBytes))
          return [200, 206, 304, 400, 412, 416].includes(status)
        },
      ),
      { numRuns: 2000 },
    ),
  )
})
