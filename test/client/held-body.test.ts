import t from 'tap'
import { headOfAnswer } from '../../src/client/fetch/answer-head.js'
import { HeldResponse, plainLength } from '../../src/client/fetch/held-body.js'
import { signedItem } from '../../src/client/prepare.js'
import { signerOfEd25519 } from '../../src/client/signer.js'
import { encodeBase64url } from '../../src/format/base64url.js'

const held = (size: number): HeldResponse =>
  new HeldResponse(new Uint8Array(size).fill(7), { status: 200, headers: { 'content-type': 'text/plain' } })

t.test('bytes in memory are given once, whole or as a stream', async (t) => {
  const response = held(3_000_000)
  const buffer = await response.arrayBuffer()
  t.equal(buffer.byteLength, 3_000_000)
  t.ok(response.bodyUsed)
  await t.rejects(response.arrayBuffer(), TypeError)
  await t.rejects(response.text(), TypeError)

  t.equal(await held(5).text(), '\u0007'.repeat(5))
  t.equal((await held(0).arrayBuffer()).byteLength, 0)
  let size = 0
  for await (const piece of held(3_000_000).body ?? []) size += piece.length
  t.equal(size, 3_000_000)

  const locked = held(10)
  const reader = locked.body?.getReader()
  await t.rejects(locked.arrayBuffer(), TypeError)
  t.equal((await reader?.read())?.value?.length, 10)

  const within = new HeldResponse(new Uint8Array(100).fill(1).subarray(10, 20), {})
  t.strictSame(new Uint8Array(await within.arrayBuffer()), new Uint8Array(10).fill(1))
})

t.test('two readers of one response do not share memory', async (t) => {
  const response = held(1000)
  const other = response.clone()
  const [one, two] = [new Uint8Array(await response.arrayBuffer()), new Uint8Array(await other.arrayBuffer())]
  one.fill(0)
  t.equal(two[0], 7)
})

t.test('a length is believed only where the body is plain', async (t) => {
  const length = (headers: Record<string, string>): number | undefined =>
    plainLength(new Response(null, { headers }))
  t.equal(length({ 'content-length': '12' }), 12)
  t.equal(length({}), undefined)
  t.equal(length({ 'content-length': 'twelve' }), undefined)
  t.equal(length({ 'content-length': '12', 'content-encoding': 'gzip' }), undefined)
})

t.test('the header of an item is read from the lines of an answer', async (t) => {
  const signer = await signerOfEd25519(crypto.getRandomValues(new Uint8Array(32)))
  const linesOf = async (
    tags: { name: string; value: string }[],
  ): Promise<{ id: string; lines: Headers }> => {
    const item = await signedItem(Buffer.from('content'), { tags }, signer)
    const signature = encodeBase64url(item.bytes.subarray(2, 66))
    const lines = new Headers({
      'x-chain-signature': signature,
      'x-chain-owner': encodeBase64url(signer.owner),
      'x-chain-signature-type': '2',
    })
    if (tags.length > 0) lines.set('x-chain-tag-count', String(tags.length))
    for (const { name, value } of tags) lines.append(`x-chain-tag-${name}`, value)
    return { id: item.id, lines }
  }
  const type = { name: 'Content-Type', value: 'text/html; charset=utf-8' }
  const hash = { name: 'File-SHA256', value: '00'.repeat(32) }
  for (const tags of [[], [type], [type, hash]]) {
    const { id, lines } = await linesOf(tags)
    t.strictSame(headOfAnswer(id, lines)?.tags, tags)
  }
  const { id, lines } = await linesOf([type])
  t.equal(headOfAnswer('A'.repeat(43), lines), undefined, 'the signature is not that of the id')
  for (const [name, value] of [
    ['x-chain-tags-truncated', 'true'],
    ['x-chain-tag-count', '2'],
    ['x-chain-signature-type', '0'],
    ['x-chain-owner', '*'],
    ['x-chain-anchor', '*'],
  ] as const) {
    const bent = new Headers(lines)
    bent.set(name, value)
    t.equal(headOfAnswer(id, bent), undefined, name)
  }
  const odd = await linesOf([{ name: 'App', value: 'x' }])
  t.equal(headOfAnswer(odd.id, odd.lines), undefined, 'the name may have had large letters')
})
