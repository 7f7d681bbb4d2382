import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BlockList, isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { HTTPFacilitatorClient } from '@x402/core/http'
import { parsePaymentPayload } from '@x402/core/schemas'
import { BoundedMap } from '../../src/actor/bounded-map.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { authorizationDigest, signerOf } from '../../src/admission/authorization.js'
import { Facilitator } from '../../src/admission/facilitator.js'
import { isUnreadable, readPayment } from '../../src/admission/presented.js'
import { usdcOf } from '../../src/admission/usdc.js'
import { formatIp, isInRange, maskIp, parseIp, parseIpRange } from '../../src/format/ip.js'
import { Dice } from '../kit/dice.js'
import { say } from '../kit/say.js'

const help = `libraries: own code beside libraries that could take its place: where they differ, and what each costs

  --folder PATH  where "npm i ipaddr.js lru-cache" was run; without it these two are left out
`

/** Microseconds of processor time for each of `count` calls, after as many to warm up. */
async function costOf(count: number, act: (at: number) => unknown): Promise<string> {
  for (let at = 0; at < count; at += 1) await act(at)
  const before = process.cpuUsage()
  for (let at = 0; at < count; at += 1) {
    const done = act(at)
    if (done instanceof Promise) await done
  }
  const { user, system } = process.cpuUsage(before)
  return `${((user + system) / count).toFixed(2)} us`
}

async function imported<Library>(folder: string, name: string): Promise<Library> {
  const path = join(resolve(folder), 'node_modules', name)
  return (await import(pathToFileURL(path).href)) as Library
}

interface IpAddr {
  readonly default: {
    process(text: string): {
      kind(): string
      toString(): string
      toByteArray(): number[]
      match(range: unknown): boolean
    }
    parseCIDR(text: string): readonly [{ kind(): string }, number]
  }
}

const ipSeeds = [
  '1.2.3.4',
  '::1',
  '2001:db8::1',
  '::ffff:1.2.3.4',
  'fe80::1%eth0',
  '1:2:3:4:5:6:7:8',
  '::',
  '1::',
  '::1.2.3.4',
  '64:ff9b::1.2.3.4',
  '010.1.1.1',
  '1.2.3',
  '0x7f.1',
  '2130706433',
]

/** A text of the list with up to three characters put in or replaced. */
function mutant(dice: Dice, seeds: readonly string[], letters: string): string {
  let text = seeds[dice.below(seeds.length)] ?? ''
  for (let times = dice.below(4); times > 0; times -= 1) {
    const at = dice.below(text.length + 1)
    text = text.slice(0, at) + letters[dice.below(letters.length)] + text.slice(at + dice.below(2))
  }
  return text
}

async function addresses(folder: string): Promise<void> {
  const { default: library } = await imported<IpAddr>(folder, 'ipaddr.js/lib/ipaddr.js')
  const theirs = (text: string): string | undefined => {
    try {
      return isIP(text) === 0 || text.includes('%') ? undefined : library.process(text).toString()
    } catch (error) {
      if (error instanceof Error) return undefined
      throw error
    }
  }
  const dice = new Dice(7)
  const wrong = new Map<string, string>()
  for (let at = 0; at < 300_000; at += 1) {
    const text = mutant(dice, ipSeeds, '0123456789abcdef:.%x ')
    const own = parseIp(text)
    const [mine, other] = [own === undefined ? undefined : formatIp(own.words), theirs(text)]
    // Another spelling of the same address is no difference.
    const isSame = mine === other || (other !== undefined && formatOf(other) === mine)
    if (!isSame) wrong.set(text, `${mine} / ${other}`)
  }
  say(`addresses: ipaddr.js behind net.isIP reads ${wrong.size} texts otherwise (ours / theirs)`)
  for (const [text, both] of [...wrong].slice(0, 4)) say(`  ${text}: ${both}`)
  const some = Array.from({ length: 20_000 }, (_, at) =>
    at % 2 === 0 ? `2001:db8:${at.toString(16)}::1` : `${1 + (at % 223)}.${at % 251}.${at % 241}.1`,
  )
  const texts = ['10.0.0.0/8', '192.168.0.0/16', '172.16.0.0/12', '2001:db8:ffff::/48']
  const ranges = texts.flatMap((text) => parseIpRange(text) ?? [])
  const libraryRanges = texts.map((text) => library.parseCIDR(text))
  const list = new BlockList()
  for (const text of texts) {
    const [net = '', bits = ''] = text.split('/')
    list.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4')
  }
  const own = await costOf(some.length, (at) => {
    const { words = new Int32Array(4), v4 = false } = parseIp(some[at] ?? '') ?? {}
    return [formatIp(v4 ? words : maskIp(words, 56)), ranges.some((range) => isInRange(range, words))]
  })
  const other = await costOf(some.length, (at) => {
    const found = library.process(some[at] ?? '')
    const isIn = libraryRanges.some((range) => range[0].kind() === found.kind() && found.match(range))
    return [found.toString(), found.toByteArray(), isIn]
  })
  const listed = await costOf(some.length, (at) =>
    list.check(some[at] ?? '', some[at]?.includes(':') === true ? 'ipv6' : 'ipv4'),
  )
  say(`  read, cut to its prefix, written and looked up in four ranges: ours ${own}, ipaddr.js ${other}`)
  say(`  looked up alone, by net.BlockList: ${listed}`)
}

function formatOf(text: string): string | undefined {
  const found = parseIp(text)
  return found === undefined ? undefined : formatIp(found.words)
}

interface Lru {
  readonly LRUCache: new (options: { max: number }) => Pick<Map<string, number>, 'get' | 'set'>
}

async function boundedMaps(folder: string): Promise<void> {
  const { LRUCache } = await imported<Lru>(folder, 'lru-cache/dist/esm/index.js')
  const keys = Array.from({ length: 200_000 }, (_, at) =>
    `${Math.imul(at, 2_654_435_761) >>> 0}`.padEnd(43, 'x'),
  )
  for (const max of [1024, 65_536]) {
    const made = { BoundedMap: new BoundedMap<string, number>(max), 'lru-cache': new LRUCache({ max }) }
    for (const [name, map] of Object.entries(made)) {
      const set = await costOf(keys.length, (at) => void map.set(keys[at] ?? '', at))
      const get = await costOf(keys.length, (at) => void map.get(keys[keys.length - 1 - (at % max)] ?? ''))
      say(`bounded maps of ${max}: ${name}: a set that removes the oldest ${set}, a get ${get}`)
    }
  }
}

const usdc = usdcOf.base
const authorization = {
  from: `0x${'12'.repeat(20)}`,
  to: `0x${'34'.repeat(20)}`,
  value: '1000',
  validAfter: '0',
  validBefore: '1800000000',
  nonce: `0x${'ab'.repeat(32)}`,
} as const

async function typedData(): Promise<void> {
  const heapBefore = process.memoryUsage()
  const sinceMs = systemClock.monotonic()
  const { hashTypedData, recoverAddress } = await import('viem/utils')
  const ms = systemClock.monotonic() - sinceMs
  const { heapUsed, rss } = process.memoryUsage()
  const grown = (now: number, before: number): string => `${((now - before) / 1e6).toFixed(1)} MB`
  say(
    `typed data: loading viem/utils takes ${ms.toFixed(0)} ms, ${grown(heapUsed, heapBefore.heapUsed)} of heap, ` +
      `${grown(rss, heapBefore.rss)} resident`,
  )
  const names = {
    from: 'address',
    to: 'address',
    value: 'uint256',
    validAfter: 'uint256',
    validBefore: 'uint256',
  }
  const fields = Object.entries({ ...names, nonce: 'bytes32' }).map(([name, type]) => ({ name, type }))
  const theirs = (): `0x${string}` =>
    hashTypedData({
      domain: {
        name: usdc.name,
        version: usdc.version,
        chainId: usdc.chainId,
        verifyingContract: usdc.address as '0x',
      },
      types: { TransferWithAuthorization: fields },
      primaryType: 'TransferWithAuthorization',
      message: authorization,
    })
  const digest = authorizationDigest(usdc, authorization)
  if (`0x${Buffer.from(digest).toString('hex')}` !== theirs()) throw new Error('the digests differ')
  say(
    `  digest: ours ${await costOf(5000, () => authorizationDigest(usdc, authorization))}, viem ${await costOf(5000, theirs)}`,
  )
  const { privateKeyToAccount } = await import('viem/accounts')
  const signed = await privateKeyToAccount(`0x${'11'.repeat(32)}`).sign({ hash: theirs() })
  const bytes = Buffer.from(signed.slice(2), 'hex')
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const high = (order - BigInt(`0x${bytes.subarray(32, 64).toString('hex')}`)).toString(16).padStart(64, '0')
  const highSigned =
    `0x${bytes.subarray(0, 32).toString('hex')}${high}${bytes[64] === 27 ? '1c' : '1b'}` as const
  const other = await recoverAddress({ hash: theirs(), signature: highSigned })
  const own = signerOf(digest, Buffer.from(highSigned.slice(2), 'hex'))
  say(`  the second form of a signature (high s), which the contract refuses: ours ${own}, viem ${other}`)
}

/** Payments as a client sends them, each wrong in one place. */
function wrongPayments(): [name: string, payment: object][] {
  const signature = `0x${'11'.repeat(65)}`
  const whole = { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature, authorization } }
  const spoiled = (more: object): object => ({
    ...whole,
    payload: { signature, authorization: { ...authorization, ...more } },
  })
  return [
    ['no authorization', { ...whole, payload: { signature } }],
    ['no signature', { ...whole, payload: { authorization } }],
    ['a signature that is no hexadecimal', { ...whole, payload: { signature: '0xzz', authorization } }],
    ['an address of 19 bytes', spoiled({ to: `0x${'34'.repeat(19)}` })],
    ['a negative value', spoiled({ value: '-1' })],
    ['a value in hexadecimal', spoiled({ value: '0x10' })],
    ['a value as a number', spoiled({ value: 1000 })],
    ['a nonce of 31 bytes', spoiled({ nonce: `0x${'ab'.repeat(31)}` })],
    ['a time that is no number', spoiled({ validBefore: 'tomorrow' })],
    ['a scheme with a line break', { ...whole, scheme: 'exact\r\n' }],
    ['an empty scheme', { ...whole, scheme: '' }],
    ['another version', { ...whole, x402Version: 3 }],
  ]
}

function payments(): void {
  const rows = wrongPayments().map(([name, payment]) => {
    const header = Buffer.from(JSON.stringify(payment)).toString('base64')
    return { name, ours: isUnreadable(readPayment(header, 1)), theirs: !parsePaymentPayload(payment).success }
  })
  const passed = rows.filter(({ theirs }) => !theirs)
  const counts = `ours refuses ${rows.filter(({ ours }) => ours).length}, the schema of @x402/core ${rows.length - passed.length}`
  say(
    `payments: of ${rows.length} malformed ones ${counts}; it accepts: ${passed.map(({ name }) => name).join('; ')}`,
  )
}

const transaction = `0x${'1c'.repeat(32)}`
const payer = authorization.from

/** Answers to a settlement that must not count as a payment. */
const falseAnswers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'another payer': (response) =>
    response.end(
      JSON.stringify({ success: true, transaction, network: 'base', payer: `0x${'99'.repeat(20)}` }),
    ),
  'another network': (response) =>
    response.end(JSON.stringify({ success: true, transaction, network: 'base-sepolia', payer })),
  'no transaction': (response) =>
    response.end(JSON.stringify({ success: true, transaction: '', network: 'base', payer })),
  'a redirect to a page that says yes': (response) => response.writeHead(307, { location: '/yes' }).end(),
  '64 MB before a yes': (response) => {
    response.write(' '.repeat(64_000_000))
    response.end(JSON.stringify({ success: true, transaction, network: 'base', payer }))
  },
}

async function facilitators(): Promise<void> {
  let answer = falseAnswers['another payer']
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/yes')
      response.end(JSON.stringify({ success: true, transaction, network: 'base', payer }))
    else answer?.(response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const own = new Facilitator(
    { url, usdc, verifyMs: 5000, settleMs: 5000, connectionsMax: 2 },
    systemClock,
    silentLog,
  )
  const library = new HTTPFacilitatorClient({ url })
  for (const [name, act] of Object.entries(falseAnswers)) {
    answer = act
    const ours = await own.settle('{}', payer)
    const theirs = await library.settle({ x402Version: 1 } as never, {} as never).then(
      ({ success }) => (success ? 'settled' : 'refused'),
      (error: unknown) => (error instanceof Error ? error.name : 'failed'),
    )
    say(`settlements: ${name}: ours ${ours.result}, @x402/core ${theirs}`)
  }
  await own.close()
  server.closeAllConnections()
  server.close()
}

const { values } = parseArgs({ options: { help: { type: 'boolean' }, folder: { type: 'string' } } })
if (values.help === true) say(help)
else {
  if (values.folder === undefined) say('addresses and bounded maps: left out, see --help')
  else {
    await addresses(values.folder)
    await boundedMaps(values.folder)
  }
  await typedData()
  payments()
  await facilitators()
}
