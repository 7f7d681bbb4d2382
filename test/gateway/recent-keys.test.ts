import t from 'tap'
import { RecentKeys } from '../../src/gateway/recent-keys.js'
import { someId } from '../source/rig.js'

t.test('an answer is asked for again only where all that names it is the same', async (t) => {
  const recent = new RecentKeys()
  t.notOk(recent.isSecond('GET', 'a', '/b', 'whole'))
  t.notOk(recent.isSecond('HEAD', 'a', '/b', 'whole'))
  t.notOk(recent.isSecond('GET', 'b', '/b', 'whole'))
  t.notOk(recent.isSecond('GET', 'a', '/c', 'whole'))
  t.notOk(recent.isSecond('GET', 'a', '/b', 'part'))
  t.ok(recent.isSecond('GET', 'a', '/b', 'whole'))
  t.ok(recent.isSecond('GET', 'a', '/b', 'whole'), 'and a third time')
})

t.test('what was asked for long ago is forgotten, and few are taken for others', async (t) => {
  const recent = new RecentKeys()
  const first = Array.from({ length: 1000 }, () => `/${someId()}`)
  for (const path of first) recent.isSecond('GET', 'a', path, 'whole')
  const known = first.filter((path) => recent.isSecond('GET', 'a', path, 'whole')).length
  t.ok(known > 950, `${known} of 1000 at once`)
  let mistaken = 0
  for (let at = 0; at < 1_000_000; at += 1) if (recent.isSecond('GET', 'a', `/${at}`, 'whole')) mistaken += 1
  t.ok(mistaken < 1000, `${mistaken} of a million taken for others`)
  t.ok(first.filter((path) => recent.isSecond('GET', 'a', path, 'whole')).length < 50)
})
