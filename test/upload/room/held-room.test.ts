import t from 'tap'
import { HeldRoom, type Holder, sharesOfParts, sharesOfRequests } from '../../../src/upload/room/held-room.js'

/** One upload, and whether it was dropped for others. */
interface Upload {
  readonly holder: Holder
  isDropped: boolean
}

const plenty = 1e15
const expect = (): void => undefined

function roomOf(placesMax: number, maxBytes: number): { room: HeldRoom; enter: typeof enter } {
  const room = new HeldRoom({ placesMax, maxBytes, ...sharesOfParts, disk: { leftBytes: plenty, expect } })
  function enter(client: string | undefined, bytes = 0, isPaid = false): Upload {
    const drop = (): void => {
      upload.isDropped = true
      room.leave(upload.holder)
    }
    const holder = room.enter({ client, hasPlace: true, isPaid, drop })
    const upload: Upload = { holder, isDropped: false }
    if (bytes > 0) room.grow(holder, bytes, 1)
    return upload
  }
  return { room, enter }
}

t.test('the emptiest and oldest of who has most places goes first', async (t) => {
  const { room, enter } = roomOf(10, 1e9)
  const friend = enter('192.0.2.7', 5000)
  const many = [10, 1, 0, 0, 50, 1, 1, 1, 1].map((bytes, at) => enter(`198.51.100.${at % 3}`, bytes))
  t.equal(room.placeFor('203.0.113.1'), undefined)
  t.strictSame(
    many.map(({ isDropped }) => isDropped),
    [false, false, false, true, false, false, false, false, false],
    'of three addresses with three each the first one has none that is empty',
  )
  for (let turn = 0; turn < 20; turn += 1) {
    t.equal(room.placeFor(`203.0.${turn}.1`), undefined)
    enter(`203.0.${turn}.1`)
  }
  t.notOk(friend.isDropped, 'of who has one place each, who has sent most keeps it')
})

t.test('many clients with one place each leave room, too', async (t) => {
  const { room, enter } = roomOf(100, 1e9)
  const uploads = Array.from({ length: 100 }, (_, at) => enter(`10.1.${at}.1`, at === 0 ? 0 : 1))
  const paid = enter('10.2.0.1', 0, true)
  t.equal(room.placeFor('10.3.0.1'), undefined)
  t.ok(uploads[0]?.isDropped)
  t.notOk(paid.isDropped)
})

t.test(
  'what is paid for at its beginning takes no place of what is not, and has a bound of its own',
  async (t) => {
    const { room, enter } = roomOf(10, 1e9)
    const first = enter('10.0.0.1', 0, true)
    for (let at = 1; at < 1000; at += 1) enter('10.0.0.1', 0, true)
    for (let at = 0; at < 49_000; at += 1)
      enter(`${20 + (at % 10)}.${at % 7}.${at % 64}.${at >> 10}`, 0, true)
    const free = enter('10.2.0.1')
    t.equal(room.placeFor('10.99.0.1'), undefined)
    t.notOk(free.isDropped)
    t.match(room.paidPlaceFor('10.0.0.1'), { status: 429 })
    t.equal(room.paidPlaceFor('11.98.0.1'), undefined)
    t.ok(first.isDropped, 'of who has most')
  },
)

t.test('no site keeps all places of what is paid for at its beginning', async (t) => {
  const { room, enter } = roomOf(10, 1e9)
  const many: Upload[] = []
  for (let at = 0; at < 50_000; at += 1) {
    const client = `2001:db8:${at % 5}:${((at >> 3) % 60).toString(16)}::`
    if (room.paidPlaceFor(client) !== undefined) throw new Error(`no place after ${at}`)
    many.push(enter(client, at === 7 ? 0 : 1, true))
  }
  t.notOk(many.some(({ isDropped }) => isDropped))
  const other = '2001:db9:1::'
  room.setUndecided((many[7] as Upload).holder, true)
  t.equal(room.paidPlaceFor(other), undefined, 'another provider')
  t.equal(many.filter(({ isDropped }) => isDropped).length, 1)
  t.notOk(many[7]?.isDropped, 'not one whose payment may still be settled')
  const mine = enter(other, 0, true)
  for (let turn = 0; turn < 50; turn += 1) {
    t.equal(room.paidPlaceFor(`2001:db8:9:${turn}::`), undefined)
    enter(`2001:db8:9:${turn}::`, 0, true)
  }
  t.notOk(mine.isDropped, 'whoever begins, who has few keeps them')
  t.equal(room.paidPlaceFor(undefined), undefined, 'this machine')
})

t.test('what is paid for or being put together is dropped for nothing that is not paid for', async (t) => {
  const { room, enter } = roomOf(2, 1e9)
  enter('10.1.0.1', 0, true)
  const busy = [enter('10.1.0.1'), enter('10.1.0.1')]
  for (const { holder } of busy) room.setBusy(holder, true)
  t.match(room.placeFor('10.3.0.1'), { status: 503 })
  for (const { holder } of busy) room.setBusy(holder, false)
  t.equal(room.placeFor('10.3.0.1'), undefined)
  t.ok(busy[0]?.isDropped)
})

t.test('a beginning takes no place of who has sent bytes and has as few places', async (t) => {
  const { room, enter } = roomOf(4, 1e9)
  const friend = enter('192.0.2.7', 5_000_000)
  const crowd = [0, 1, 2].map((at) => enter(`198.51.100.${at}`, 211))
  for (const { holder } of crowd) room.setBusy(holder, true)
  t.match(room.placeFor('198.51.100.9'), { status: 503 }, 'who has more places that are busy')
  t.match(room.placeFor('203.0.113.1'), { status: 503 }, 'who has none yet')
  t.notOk(friend.isDropped)
  for (const { holder } of crowd) room.setBusy(holder, false)
  for (let turn = 0; turn < 20; turn += 1) {
    const client = turn % 2 === 0 ? '198.51.100.9' : `203.0.${turn}.1`
    t.equal(room.placeFor(client), undefined)
    enter(client)
  }
  t.notOk(friend.isDropped, 'whoever begins, and however often')
})

t.test('bytes are taken from who holds most, as long as that is fair', async (t) => {
  const { room, enter } = roomOf(100, 1000)
  const large = ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.2.0.1'].map((client) => enter(client, 240))
  const mine = enter('10.3.0.1', 40)
  t.equal(room.roomFor(mine.holder, 30), undefined)
  t.ok(large[0]?.isDropped, 'the network with three addresses holds most')
  room.grow(mine.holder, 200, 1)
  t.match(room.roomFor(mine.holder, 100), { status: 429 }, 'a quarter is the most')
  const paid = enter('10.9.0.1', 0, true)
  t.equal(room.roomFor(paid.holder, 900), undefined, 'what is paid for takes what is needed')
  t.equal(large.filter(({ isDropped }) => isDropped).length + Number(mine.isDropped), 5)
})

t.test('who holds most gets no more room by dropping others', async (t) => {
  const { room, enter } = roomOf(1e5, 1e6)
  const crowd = Array.from({ length: 1000 }, (_, at) => enter(`10.${at >> 8}.${at & 255}.1`, 1000))
  const first = crowd[0]
  if (first === undefined) throw new Error('nobody is there')
  t.match(room.roomFor(first.holder, 1000), { status: 503 })
  t.match(room.foresee(first.holder, 1000), { status: 503 })
  t.equal(
    crowd.some(({ isDropped }) => isDropped),
    false,
  )
  const late = enter('192.0.2.1')
  t.equal(room.foresee(late.holder, 100), undefined)
  t.equal(room.roomFor(late.holder, 100), undefined)
  t.equal(crowd.filter(({ isDropped }) => isDropped).length, 1)
})

t.test(
  'many networks of one provider make room before one network that holds more than each of them',
  async (t) => {
    const { room, enter } = roomOf(300, 30_000)
    const friend = enter('192.0.2.1', 500)
    const crowd = Array.from({ length: 256 }, (_, at) => enter(`198.51.${at}.1`, 100))
    const late = enter('203.0.113.1')
    for (let turn = 0; turn < 17; turn += 1) {
      t.equal(room.roomFor(late.holder, 400), undefined)
      room.grow(late.holder, 400, 0)
    }
    t.notOk(friend.isDropped)
    t.ok(crowd.some(({ isDropped }) => isDropped))
    while (room.places < 300) enter('203.0.113.2')
    t.equal(room.placeFor('192.0.2.9'), undefined)
    t.notOk(friend.isDropped, 'nor does it lose its place')
  },
)

t.test('half of what the disk has is left to others', async (t) => {
  const disk = { leftBytes: 1e9, expect }
  const room = new HeldRoom({ ...sharesOfParts, maxBytes: 1e12, disk })
  const holder = room.enter({ client: undefined, hasPlace: true, isPaid: false, drop: () => undefined })
  t.equal(room.roomFor(holder, 5e8), undefined)
  room.grow(holder, 5e8, 1)
  disk.leftBytes -= 5e8
  t.match(room.roomFor(holder, 1), { status: 503 })
})

t.test('many files of one byte take the room of who sends them', async (t) => {
  const { room, enter } = roomOf(1e5, 2 ** 37)
  const files = enter('10.1.0.1')
  room.grow(files.holder, 500_000, 500_000)
  const bytes = enter('10.2.0.1', 1e9)
  const mine = enter('10.3.0.1')
  t.equal(room.roomFor(mine.holder, 10), undefined)
  t.strictSame([files.isDropped, bytes.isDropped], [true, false])
})

t.test('on a full disk who sends most in one request makes room for who sends less', async (t) => {
  const disk = {
    leftBytes: 900,
    expect: (bytes: number) => {
      disk.leftBytes += bytes
    },
  }
  const room = new HeldRoom({ ...sharesOfRequests, disk })
  const dropped: string[] = []
  const enter = (client: string, bytes: number): Holder => {
    const drop = (): void => {
      dropped.push(client)
      room.leave(holder)
    }
    const holder = room.enter({ client, hasPlace: false, isPaid: false, drop })
    t.equal(room.roomFor(holder, bytes), undefined)
    room.grow(holder, bytes, 1)
    disk.leftBytes -= bytes
    return holder
  }
  enter('10.1.0.1', 400)
  const most = enter('10.2.0.1', 500)
  t.match(room.roomFor(most, 100), { status: 503 })
  t.equal(room.roomForNew('10.3.0.1', 100), undefined)
  t.strictSame(dropped, ['10.2.0.1'], 'one is enough')
  t.equal(disk.leftBytes, 500)
})
