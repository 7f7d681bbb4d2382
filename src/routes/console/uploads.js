/** The part of the console about the upload service: what is under way, and why it is not further. */
import { bytes, number, span } from './metrics.js'
import { watchService } from './service-watch.js'
import { ask, byId } from './session.js'
import { cell, element, fill, table } from './view.js'

const everyMs = 5000
/** Beginning and end of an id; the whole of it under the pointer. */
function short(text) {
  return [element('span', { title: text }, text.length < 16 ? text : `${text.slice(0, 8)}…${text.slice(-6)}`)]
}

/** Amounts of the chain for people: 12 digits behind the point. */
export function coins(amount) {
  const value = Number(amount) / 1e12
  return value === 0 || Math.abs(value) >= 0.001
    ? value.toLocaleString('en', { maximumFractionDigits: 6 })
    : value.toExponential(2)
}

export function facts(pairs) {
  return element(
    'dl',
    {},
    pairs.flatMap(([name, value, kind = '']) => [
      element('dt', {}, name),
      element('dd', kind === '' ? {} : { class: kind }, value),
    ]),
  )
}

/** Looks while somebody looks on. Nothing is requested before the service runs in this program. */
export const uploads = watchService('uploads', async () => show(await ask('uploads')), everyMs)

function show({ now, height, items, open, bundles, wallet, free }) {
  const age = (ms) => (ms === null || ms === undefined ? '' : span(Math.max(0, now - ms) / 1000))
  byId('uploads-count').textContent = `${number(items.kept)} items`
  fill(byId('uploads-facts'), [
    facts([
      [
        'Waiting for a bundle',
        items.waiting === 0 ? 'none' : `${number(items.waiting)}, the oldest for ${age(items.oldestMs)}`,
      ],
      [
        'Paid ones among them',
        items.oldestPaidMs === null ? 'none' : `the oldest for ${age(items.oldestPaidMs)}`,
      ],
      [
        'In several requests',
        open.open === 0 ? 'none' : `${number(open.open)}, ${bytes(open.bytes)} on disk`,
      ],
      ['Wallet', wallet.address, 'mono'],
      [
        'Balance',
        wallet.winston === undefined
          ? 'no node has answered yet'
          : `${coins(wallet.winston)} AR, ${age(wallet.atMs)} ago`,
      ],
      ['Height', height === null ? 'not known' : number(height)],
      [
        'Free',
        free.rules.itemMaxBytes === 0
          ? 'nothing'
          : `${bytes(free.rules.itemMaxBytes)} each, ${bytes(free.rules.walletBytes)} for a wallet; ${number(free.known)} wallets and addresses have used some`,
      ],
    ]),
  ])
  const carried = bundles.map((one) => [
    cell(short(one.id), 'mono'),
    cell(one.state),
    cell(number(one.items), 'number'),
    cell(bytes(one.sizeBytes), 'number'),
    cell(age(one.createdMs), 'number'),
    cell(one.height === undefined ? '' : number(one.height), 'number'),
    cell(one.attempts > 0 ? `${one.reason ?? ''} (${number(one.attempts)} times)` : (one.reason ?? '')),
    cell(orders(one), 'actions'),
  ])
  const heads = ['Bundle', 'State', 'Items', 'Size', 'Age', 'Height', 'Why', '']
  fill(byId('uploads-bundles'), [table(heads, carried, 'No bundle was packed yet.', 'bundles')])
  const parts = open.uploads.map((one) => [
    cell(short(one.id), 'mono'),
    cell(one.protocol === 'parts' ? 'parts' : 'resumable'),
    cell(one.state),
    cell(
      one.length === undefined ? bytes(one.bytes) : `${bytes(one.bytes)} of ${bytes(one.length)}`,
      'number',
    ),
    cell(age(one.createdMs), 'number'),
  ])
  fill(byId('uploads-open'), [
    table(
      ['Upload', 'How', 'State', 'Here', 'Age'],
      parts,
      'Nobody uploads in several requests now.',
      'open',
    ),
  ])
  const most = free.most.map(({ name, bytes: used }) => [cell(name, 'mono'), cell(bytes(used), 'number')])
  fill(byId('uploads-free'), [
    table(['Used most of what is free', 'Bytes'], most, 'Nobody has uploaded for free yet.'),
  ])
}

function orders({ id, state, released, unshown }) {
  const made = []
  const order = (text, path, question) => {
    const button = element('button', { type: 'button' }, text)
    button.addEventListener('click', async () => {
      if (!confirm(question)) return
      try {
        byId('uploads-said').textContent = (await ask(`${path}/${id}`, 'POST')).message
      } catch (error) {
        byId('uploads-said').textContent = error.message
      }
      void uploads.look()
    })
    made.push(button)
  }
  if (state === 'packed' || state === 'posted' || state === 'seeded')
    order('Repack', 'uploads-repack', 'Give this bundle up, and pack its items into another one?')
  if ((state === 'posted' || state === 'seeded') && !released)
    order('Reseed', 'uploads-reseed', 'Send all chunks of this bundle once more?')
  if (unshown !== undefined && !released)
    order(
      'Trust',
      'uploads-trust',
      'Take this bundle for permanent though no node shows its data? Its bytes are removed here in an hour.',
    )
  return made
}

byId('upload-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const place = byId('upload-found')
  try {
    const { item, bundle } = await ask(`uploads/${encodeURIComponent(byId('upload-what').value.trim())}`)
    const pairs = []
    if (item !== undefined) {
      const state =
        item.reason !== undefined
          ? `given up: ${item.reason}`
          : item.permanent !== undefined
            ? `permanent since height ${number(item.permanent)}`
            : item.bundle === undefined
              ? 'waits for a bundle'
              : 'in a bundle that is not permanent'
      pairs.push(
        ['Item', item.id, 'mono'],
        ['State', state],
        ['Size', bytes(item.place.sizeBytes)],
        ['Owner', item.owner, 'mono'],
        ['Accepted', new Date(item.receivedMs).toLocaleString()],
        ['Promised by height', number(item.deadlineHeight)],
        ['Charged', `${item.winc} winc`],
      )
    }
    if (bundle !== undefined)
      pairs.push(
        ['Bundle', bundle.id, 'mono'],
        ['Its state', bundle.reason ? `${bundle.state}: ${bundle.reason}` : bundle.state],
      )
    fill(place, [facts(pairs)])
  } catch (error) {
    fill(place, [element('p', { class: 'bad' }, error.message)])
  }
})
