import { randomBytes } from 'node:crypto'
import t from 'tap'
import { someId } from '../source/rig.js'
import { hasNginx, startNginx } from './nginx.js'
import { type Answered, askAt, stage } from './rig.js'

const size = 1000
type Headers = Record<string, string>

/** `TAG` stands for the entity tag that the server in question gave. */
const forms: readonly [name: string, headers: Headers][] = [
  ['nothing', {}],
  ['first byte', { range: 'bytes=0-0' }],
  ['last byte', { range: 'bytes=999-999' }],
  ['middle', { range: 'bytes=100-199' }],
  ['all', { range: 'bytes=0-999' }],
  ['open end', { range: 'bytes=900-' }],
  ['open end from the start', { range: 'bytes=0-' }],
  ['beyond the end', { range: 'bytes=900-5000' }],
  ['suffix', { range: 'bytes=-10' }],
  ['suffix of one', { range: 'bytes=-1' }],
  ['suffix longer than all', { range: 'bytes=-5000' }],
  ['suffix of nothing', { range: 'bytes=-0' }],
  ['start at the end', { range: 'bytes=1000-' }],
  ['start beyond the end', { range: 'bytes=1000-2000' }],
  ['backwards', { range: 'bytes=20-10' }],
  ['no digits', { range: 'bytes=a-b' }],
  ['only a dash', { range: 'bytes=-' }],
  ['no dash', { range: 'bytes=5' }],
  ['empty set', { range: 'bytes=' }],
  ['no set', { range: 'bytes' }],
  ['another unit', { range: 'items=0-5' }],
  ['unit in capitals', { range: 'BYTES=0-5' }],
  ['blank before', { range: 'bytes= 0-5' }],
  ['blank behind', { range: 'bytes=0-5 ' }],
  ['blanks inside', { range: 'bytes=0 - 5' }],
  ['numbers longer than any integer', { range: 'bytes=0-99999999999999999999999' }],
  ['start longer than any integer', { range: 'bytes=99999999999999999999999-' }],
  ['signs', { range: 'bytes=+0-5' }],
  ['two', { range: 'bytes=0-9,20-29' }],
  ['two in the other order', { range: 'bytes=20-29,0-9' }],
  ['blanks around commas', { range: 'bytes=0-9 , 20-29' }],
  ['an empty element', { range: 'bytes=0-9,,20-29' }],
  ['with a suffix', { range: 'bytes=0-9,-10' }],
  ['three that touch', { range: 'bytes=0-9,10-19,20-29' }],
  ['one outside', { range: 'bytes=0-9,5000-' }],
  ['all outside', { range: 'bytes=2000-,5000-' }],
  ['overlap', { range: 'bytes=0-99,50-149' }],
  ['twice the same', { range: 'bytes=0-9,0-9' }],
  ['more than there is', { range: 'bytes=0-700,300-999' }],
  ['a flood of all', { range: `bytes=${Array.from({ length: 200 }, () => '0-').join(',')}` }],
  [
    'a flood of bytes',
    { range: `bytes=${Array.from({ length: 100 }, (_, at) => `${at * 2}-${at * 2}`).join(',')}` },
  ],
  ['one malformed among others', { range: 'bytes=0-9,x' }],
  ['the tag', { 'if-none-match': 'TAG' }],
  ['the tag, weak', { 'if-none-match': 'W/TAG' }],
  ['a list with the tag', { 'if-none-match': '"a", "b" ,TAG' }],
  ['a list without the tag', { 'if-none-match': '"a", "b"' }],
  ['any', { 'if-none-match': '*' }],
  ['the tag, with a range', { 'if-none-match': 'TAG', range: 'bytes=0-9' }],
  ['the tag, with a range outside', { 'if-none-match': 'TAG', range: 'bytes=5000-' }],
  ['another tag, with a range', { 'if-none-match': '"a"', range: 'bytes=0-9' }],
  ['match', { 'if-match': 'TAG' }],
  ['match another', { 'if-match': '"a"' }],
  ['match a list', { 'if-match': '"a",TAG' }],
  ['match any', { 'if-match': '*' }],
  ['match weak', { 'if-match': 'W/TAG' }],
  ['match another before none-match', { 'if-match': '"a"', 'if-none-match': 'TAG' }],
  ['match, then none-match', { 'if-match': 'TAG', 'if-none-match': 'TAG' }],
  ['range if the tag', { 'if-range': 'TAG', range: 'bytes=0-9' }],
  ['range if another', { 'if-range': '"a"', range: 'bytes=0-9' }],
  ['range if weak', { 'if-range': 'W/TAG', range: 'bytes=0-9' }],
  ['range if another, outside', { 'if-range': '"a"', range: 'bytes=5000-' }],
  ['if-range alone', { 'if-range': '"a"' }],
]

/** Where this gateway answers otherwise, on purpose. */
const improvements: Readonly<Record<string, readonly [ours: number, nginx: number, why: string]>> = {
  'empty set': [416, 200, 'a set without a range has none that can be satisfied, as existing gateways say'],
  'no set': [400, 200, 'no range set at all is malformed, as existing gateways say'],
  'blanks inside': [416, 206, 'the grammar has no blanks inside a range (RFC 9110 section 14.1.1)'],
  'numbers longer than any integer': [206, 416, 'a last position beyond the end means the end'],
  'an empty element': [206, 416, 'recipients skip empty list elements (RFC 9110 section 5.6.1.2)'],
  'a flood of bytes': [200, 206, 'many small ranges cost more than everything (RFC 9110 section 14.2)'],
}

/** What is compared: status, the range, the bytes; of several parts each with its place. */
function essence({ status, headers, body }: Answered): unknown {
  const boundary = /boundary=(.+)$/.exec(headers['content-type'] ?? '')?.[1]
  const range = headers['content-range']
  // The words of a refusal are each server's own.
  if (status >= 400) return { status, range }
  if (boundary === undefined) return { status, range, body: body.toString('hex') }
  const parts = body
    .toString('latin1')
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const gap = part.indexOf('\r\n\r\n')
      const place = /Content-Range: (.*)\r\n/i.exec(part.slice(0, gap + 2))?.[1]
      return [place, Buffer.from(part.slice(gap + 4, -2), 'latin1').toString('hex')]
    })
  return { status, parts }
}

t.test(
  'ranges and conditions are answered as nginx does',
  { skip: hasNginx ? false : 'no nginx' },
  async (t) => {
    const body = randomBytes(size)
    const nginx = await startNginx({ content: body, empty: Buffer.alloc(0) })
    const on = await stage()
    t.teardown(async () => {
      await on.close()
      await nginx.close()
    })
    const id = someId()
    await on.keep(id, body)
    const places = { ours: [on.url, `/raw/${id}`], nginx: [nginx.url, '/content'] } as const
    const tags = {
      ours: (await askAt(on.url, `/raw/${id}`)).headers.etag ?? '',
      nginx: (await askAt(nginx.url, '/content')).headers.etag ?? '',
    }
    const answered = (who: 'ours' | 'nginx', method: string, headers: Headers): Promise<Answered> => {
      const filled = Object.entries(headers).map(([name, value]) => [name, value.replace('TAG', tags[who])])
      const [base, path] = places[who]
      return askAt(base, path, method, Object.fromEntries(filled))
    }
    for (const [name, headers] of forms) {
      for (const method of ['GET', 'HEAD']) {
        const [ours, theirs] = [
          await answered('ours', method, headers),
          await answered('nginx', method, headers),
        ]
        const improved = improvements[name]
        if (improved === undefined) t.same(essence(ours), essence(theirs), `${method} ${name}`)
        else t.same([ours.status, theirs.status], improved.slice(0, 2), `${method} ${name}: ${improved[2]}`)
      }
    }
    const used = Object.keys(improvements).filter((name) => forms.every(([form]) => form !== name))
    t.same(used, [], 'every improvement belongs to a form')
  },
)
