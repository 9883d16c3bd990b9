// Everything here is an enhancement: without it forms post and links navigate. The chat's own part comes last.
(() => {})();
