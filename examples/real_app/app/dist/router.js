// Shows the page of the URL's path. Groups, such as (tabs), are not part of a page's address.
import { show } from './screen.js';

const pages = [
  [/^\/$/, () => 'Home'],
  [/^\/settings$/, () => 'Settings'],
  [/^\/notes\/([^/]+)$/, (id) => `Note ${decodeURIComponent(id)}`],
  [/^\/redirect$/, () => 'Home'],
];

const path = location.pathname.replace(/\/\([^/]+\)/g, '') || '/';
const [pattern, title] = pages.find(([pattern]) => pattern.test(path)) ?? [/^/, () => 'Not found'];
show('page', title(...path.match(pattern).slice(1)));
